"""Kernels run as in a model: without NumPy's warnings about floating-point numbers."""

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _no_warnings_about_numbers() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield
