"""The line of Python that has called a function of this package."""

from __future__ import annotations

import os
import sys

from ovir.diagnostics.diagnostic import Place

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def caller() -> Place:
    """Return the line of Python outside of this package that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)
