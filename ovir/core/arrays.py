"""The type of the arrays that hold tensors' numbers."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
