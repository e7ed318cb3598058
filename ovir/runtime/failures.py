"""What is said when a layer fails: one error with its place, whatever went wrong in it."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.arrays import Array
from ovir.diagnostics import INTERNAL, RUN, OperatorError, OvirError, RunError, diagnostic
from ovir.inference import explain_failure
from ovir.model import Layer


def failed(layer: Layer, error: Exception, arguments: Sequence[Array]) -> OvirError:
    """The error to raise for one that a layer's kernel has raised on these arguments.

    A kernel may rely on what inference has checked; where sizes were unknown then, inference on the actual ones tells
    what does not fit.
    """
    if isinstance(error, OvirError):  # of a body, and placed there
        return error
    if isinstance(error, MemoryError):
        return RunError(diagnostic(RUN, f"out of memory: {error}", layer.place))
    if not isinstance(error, OperatorError):
        error = explain_failure(layer, arguments) or error
    if isinstance(error, OperatorError):
        return RunError(diagnostic(error.code or RUN, error.message, layer.place, hint=error.hint))
    shown = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arguments)
    message = f"the kernel failed on {shown or 'no inputs'}: {type(error).__name__}: {error}"
    return RunError(diagnostic(INTERNAL, message, layer.place, hint="this is a fault of ovir; please report it"))
