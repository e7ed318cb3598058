"""Random detections, and the labels of their images."""

import numpy as np

from ovir.core.arrays import Array


def random_detections(seed: int, count: int) -> list[tuple[Array, Array]]:
    """Return detections (class, score, x1, y1, x2, y2) and labels (x1, y1, x2, y2, class, crowd) of images."""
    random = np.random.default_rng(seed)
    images = []
    for _ in range(count):
        boxes = int(random.integers(0, 6))
        corner, size = random.uniform(0, 60, (boxes, 2)), random.uniform(10, 40, (boxes, 2))
        sides = np.hstack([corner, corner + size])
        kinds = random.integers(0, 3, (boxes, 1))
        crowd = random.random((boxes, 1)) < 0.1
        label = np.hstack([sides, kinds, crowd])
        moved = np.vstack([sides + random.normal(0, 3, sides.shape), random.uniform(0, 90, (2, 4))])
        moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)
        classes = np.vstack([kinds, random.integers(0, 4, (2, 1))])
        images.append((np.hstack([classes, random.random((len(moved), 1)), moved]), label))
    return images
