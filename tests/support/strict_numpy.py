"""The strictness of NumPy 2.5 in older releases, so that tests with these find what newer ones refuse."""

from typing import Any

import numpy as np

_where = np.where


def where(condition: Any, *choices: Any) -> Any:
    """Choose as ``np.where`` does; raise OverflowError for an integer of Python that the type of the result does not
    hold. NumPy 2.4 takes its low bits."""
    chosen = _where(condition, *choices)
    for choice in choices:
        if type(choice) is int and chosen.dtype.kind in "iu":
            np.array(choice, chosen.dtype)
    return chosen
