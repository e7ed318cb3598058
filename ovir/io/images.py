"""Read images as inputs of a model. Pillow, which does it, comes with the extra ``ovir[image]``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.reading import Path, open_regular
from ovir.core.shapes import PartialShape
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import plural

if TYPE_CHECKING:
    from PIL.Image import Image

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
LAYOUTS = ("NCHW", "NHWC", "CHW", "HWC")
RESIZES = ("stretch", "crop", "pad", "none")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class Preparation:
    """The conversion of the pixels of an image, 0 to 255, to values of an input: ``(pixel - mean) / scale``."""

    mean: tuple[float, ...] = ()
    """One number for each channel, or one for all; none leaves pixels as they are."""
    scale: tuple[float, ...] = ()
    layout: str | None = None
    """None: as the input's shape suggests."""
    resize: str = "stretch"
    """The way to the height and width of the input: ``stretch`` the image, scale it and ``crop`` the excess,
    scale it and ``pad`` with zeros at the right and at the bottom, or ``none``."""
    bgr: bool = False
    """Whether blue is the first channel, as in models trained with OpenCV."""


def load_image(
    path: Path, element_type: ElementType, shape: PartialShape, how: Preparation | None = None
) -> tuple[Array, str]:
    """Return an image as the array for an input of this type and shape, and a text about its changes.

    InputError where the input is not for images or Pillow is missing; ReadError where the file cannot be read.
    """
    how = how or Preparation()
    layout = how.layout or _layout_of(path, shape)
    if shape.rank is not None and shape.rank != len(layout):
        message = f"the layout {layout} has {plural(len(layout), 'axis')}, the input of shape {shape} has {shape.rank}"
        _refuse(path, message)
    sizes = dict(zip(layout, shape if shape.rank is not None else [None] * len(layout), strict=True))
    channels, height, width = (_static(sizes[axis]) for axis in "CHW")
    if channels is not None and channels not in _MODES:
        _refuse(path, f"the input of shape {shape} has {plural(channels, 'channel')}; an image has 1, 3 or 4")
    image = _opened(path)
    if image.mode.startswith(("I", "F")):
        message = f"the pixels of the image have more than 8 bits (mode {image.mode} of Pillow)"
        _refuse(path, message, "give them as an array: NAME=file.npy, or save the image with 8 bits")
    image = image.convert(_MODES[channels] if channels is not None else "L" if image.mode in ("1", "L") else "RGB")
    before = image.size
    image = _resized(path, image, width or before[0], height or before[1], how.resize)
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    order = "gray" if pixels.shape[2] == 1 else image.mode
    if how.bgr and pixels.shape[2] >= 3:
        pixels, order = pixels[:, :, [2, 1, 0, *range(3, pixels.shape[2])]], "BGR" + image.mode[3:]
    values = _normalized(path, pixels, element_type, how)
    array = values.transpose(["HWC".index(axis) for axis in layout if axis != "N"])
    done = f"{before[0]}x{before[1]} {order} in layout {layout}"
    if image.size != before:
        done += f", resized to {image.width}x{image.height} ({how.resize})"
    return (array[np.newaxis] if layout[0] == "N" else array), f"{done}, {_range_text(how)}"


def _range_text(how: Preparation) -> str:
    if not how.mean and not how.scale:
        return "pixels 0 to 255"
    mean = " - mean" if how.mean else ""
    return f"(pixels{mean}) / scale" if how.scale else f"pixels{mean}"


def _layout_of(path: Path, shape: PartialShape) -> str:
    """Return the layout in which the axis of channels has a size that an image may have."""
    if shape.rank is None:
        return "NCHW"
    likely = [
        layout
        for layout in LAYOUTS
        if len(layout) == shape.rank and _static(shape[layout.index("C")]) in (None, *_MODES)
    ]
    certain = [layout for layout in likely if _static(shape[layout.index("C")]) is not None]
    found = certain or likely
    if not found:
        _refuse(path, f"an input of shape {shape} does not take an image", "give an array: NAME=file.npy")
    if len(found) > 1:
        _refuse(path, f"the shape {shape} may have the layout {' or '.join(found)}", f"give it: --layout {found[0]}")
    return found[0]


def _static(dim: Any) -> int | None:
    return dim.lower if dim is not None and dim.is_static else None


def load_classes(path: Path) -> Array:
    """Return the class of each pixel of an image [height, width]: its grey level, or the index of its color."""
    image = _opened(path)
    if image.mode not in ("P", "L", "I;16", "I"):
        _refuse(path, f"an image in the mode {image.mode} has no class for each pixel", "save it with grey levels")
    return np.asarray(image)


def _opened(path: Path) -> Image:
    """Return the image, turned as its metadata says."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        message = "images are read with Pillow, which is not installed"
        hint = 'install it with `pip install "ovir[image]"`, or give an array: NAME=file.npy'
        raise InputError.usage(message, Place(os.fspath(path)), hint=hint) from None
    try:
        with open_regular(path) as file, Image.open(file) as opened:
            return ImageOps.exif_transpose(opened)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = getattr(error, "strerror", None) or _OBJECT.sub("", str(error).splitlines()[0])
        raise ReadError.of_file(path, f"cannot read the image: {reason}") from None


_OBJECT = re.compile(r" <.*>$")
"""The end of a message of Pillow about a file without a name."""


def _resized(path: Path, image: Image, width: int, height: int, mode: str) -> Image:
    if image.size == (width, height):
        return image
    if mode == "none":
        message = f"the image is {image.width}x{image.height} (width by height), the input {width}x{height}"
        _refuse(path, message, "let it be resized: --resize stretch, crop or pad")
    if not width or not height:
        _refuse(path, f"the input is {width}x{height} (width by height): it holds no image")
    from PIL import Image, ImageOps

    bilinear = Image.Resampling.BILINEAR
    if mode == "stretch":
        return image.resize((width, height), bilinear)
    if mode == "crop":
        return ImageOps.fit(image, (width, height), bilinear)
    return ImageOps.pad(image, (width, height), bilinear, centering=(0, 0))


def _normalized(path: Path, pixels: Array, element_type: ElementType, how: Preparation) -> Array:
    """Return ``(pixels - mean) / scale`` as f32, and pixels without mean and scale as the bytes that they are."""
    if not how.mean and not how.scale:
        return pixels
    if not element_type.is_real and not element_type.is_dynamic:
        _refuse(path, f"the input is {element_type}: --mean and --scale make values that are not integers")
    mean = _by_channel(path, "mean", how.mean, pixels.shape[2], 0.0)
    scale = _by_channel(path, "scale", how.scale, pixels.shape[2], 1.0)
    if not scale.all():
        _refuse(path, f"--scale divides by its values, got {', '.join(f'{x:g}' for x in how.scale)}")
    normalized: Array = (pixels.astype(np.float32) - mean) / scale
    return normalized


def _by_channel(path: Path, name: str, values: Sequence[float], channels: int, default: float) -> Array:
    if len(values) not in (0, 1, channels):
        _refuse(path, f"--{name} has {plural(len(values), 'value')}, the image {plural(channels, 'channel')}")
    return np.array(values or [default], np.float32)


def _refuse(path: Path, message: str, hint: str | None = None) -> NoReturn:
    raise InputError.of_file(path, message, hint=hint)
