"""The type of the arrays that hold the numbers of tensors."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
