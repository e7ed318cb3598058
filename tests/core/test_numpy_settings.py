"""The settings of NumPy while kernels run, and how they end."""

from contextlib import suppress

import numpy as np
import pytest

from ovir.core import numpy_settings
from ovir.core.numpy_settings import kernel_settings


@pytest.mark.parametrize("has_variable", [True, False])
def test_settings_hold_inside_only(has_variable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_variable:  # as in a later NumPy
        monkeypatch.setattr(numpy_settings, "_settings", None)
    with np.errstate(divide="raise", over="warn"):
        before = np.geterr(), np.getbufsize()
        with suppress(ZeroDivisionError), kernel_settings():
            with kernel_settings():
                assert set(np.geterr().values()) == {"ignore"}
            assert set(np.geterr().values()) == {"ignore"}
            assert np.getbufsize() < before[1]
            with np.errstate(divide="raise"):
                assert np.geterr()["divide"] == "raise"
            raise ZeroDivisionError
        assert (np.geterr(), np.getbufsize()) == before
