"""Boxes of labeled images, as the .json files of COCO have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.reading import parse_json, read_text
from ovir.diagnostics.errors import ReadError
from ovir.diagnostics.wording import reason_of


def read_boxes(path: str) -> dict[str, Array]:
    """Return the boxes of each image by the name of its file; raise ReadError.

    A box is a row: x1, y1, x2, y2 as shares of the width and height of the image, the id of its category, and whether
    it is a crowd (1 or 0).
    """
    try:
        content = parse_json(read_text(path))
    except (OSError, ValueError) as error:
        raise ReadError.of_file(path, f"cannot read the labels: {reason_of(error)}", hint=_EXPECTED) from None
    try:
        images = {image["id"]: image for image in content["images"]}
        rows: dict[Any, list[list[float]]] = {number: [] for number in images}
        for found in content["annotations"]:
            x, y, width, height = map(float, found["bbox"])
            image = images[found["image_id"]]
            across, down = float(image["width"]), float(image["height"])
            sides = [x / across, y / down, (x + width) / across, (y + height) / down]
            rows[found["image_id"]].append([*sides, float(found["category_id"]), float(found.get("iscrowd", 0))])
        return {image["file_name"]: np.array(rows[number]).reshape(-1, 6) for number, image in images.items()}
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        message = f"not boxes of COCO: {type(error).__name__}: {error}"
        raise ReadError.of_file(path, message, hint=_EXPECTED) from None


_EXPECTED = "expected an object with 'images' and 'annotations', which have 'bbox' and 'category_id'"
