"""Find the layers that must stay in f32 on a device that computes in f16, bf16 or int8."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ovir.core.arrays import Array
from ovir.debugging.input_sets import Inputs, input_sets
from ovir.debugging.keep_search import Search
from ovir.debugging.quantization import Int8, Ranges
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean
from ovir.kernels.narrow import NARROW
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.emulation import Emulation

TOLERANCES = {"f16": 0.01, "bf16": 0.05, "int8": 0.1}
"""The default tolerance for each type: the root mean square of an output's error, as a share of the output."""

Progress = Callable[[int, int, str], None]
"""Called with how much is done, how much there is, and what is being done."""


@dataclass(frozen=True)
class LayerSensitivity:
    """What happens to the outputs if one layer alone computes in the narrower type."""

    layer: str
    """Its key."""
    id: int
    """Its id in the file."""
    type: str
    """Its operation, such as ``MatMul``."""
    error: float | None
    """The largest error of an output; None if the time was not enough to measure it."""
    own_error: float
    """The error of the layer's own results."""
    keep: bool
    """Whether the layer must stay in f32."""


@dataclass(frozen=True)
class Precision:
    """The layers that must stay in f32 to keep the outputs within the tolerance, and how that was found."""

    to: str
    """The narrower type: ``f16``, ``bf16`` or ``int8``."""
    tolerance: float
    """The largest error of an output that is allowed, relative to the root mean square of the output."""
    samples: int
    """The number of sets of inputs that were used."""
    error_before: float
    """The error of the outputs if all layers compute in the narrower type."""
    error: float
    """The error of the outputs if the layers to keep stay in f32."""
    keep: tuple[str, ...]
    """The names of the layers to keep, in the order of the graph; in a body, after the names of the layers around."""
    layers: tuple[LayerSensitivity, ...]
    """All layers that compute real numbers, in the order of the graph."""

    @property
    def within(self) -> bool:
        """Return whether the outputs are within the tolerance."""
        return self.error <= self.tolerance

    @property
    def ignored_scope(self) -> str:
        """Return the layers to keep as Python code for NNCF."""
        return f"nncf.IgnoredScope(names={list(self.keep)!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**asdict(self), "within": self.within, "ignored_scope": self.ignored_scope}


def precision(
    model: Model | str | os.PathLike[str],
    to: str = "f16",
    inputs: Inputs = None,
    *,
    samples: int | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    seconds: float = 300.0,
    progress: Progress | None = None,
) -> Precision:
    """Find the layers that must stay in f32 if the model computes in ``to``: ``"f16"``, ``"bf16"`` or ``"int8"``.

    ``inputs``, ``samples`` and ``seed`` give sets of inputs as for ``ovir.compare``. An output is within ``tolerance``
    if the root mean square of its error is at most this share of its own. Each layer is first emulated alone; then the
    most sensitive ones are kept, as few as suffice, which is verified with all others emulated together. If measuring
    takes longer than ``seconds``, the rest is ranked by the error of the layers' own results. ``progress`` is called
    with how much is done, how much there is, and what is being done.

    Raises InputError for a type that cannot be emulated and for inputs that do not match the model, ReadError and
    ModelError for a file that cannot be read, and RunError if the model cannot be run in f32.
    """
    if to not in TOLERANCES:
        hint = did_you_mean(to, TOLERANCES) if isinstance(to, str) else None
        message = f"{to!r} cannot be emulated; expected {', '.join(TOLERANCES)}"
        raise InputError.usage(message, hint=hint)
    if not isinstance(model, Model):
        from ovir.model import read_model  # a convenience only

        model = read_model(model)
    sets = [load() for load in input_sets(model, inputs, samples, seed)]
    limit = TOLERANCES[to] if tolerance is None else tolerance
    emulation = _emulation(model, to, sets)
    search = Search(model, emulation, sets, limit, seconds, progress or _no_progress)
    found = search.find()
    keep = tuple(key for index in sorted(found.keep) for key in search.runs.keys(index))
    layers = tuple(
        LayerSensitivity(
            *(layer.key, layer.id, layer.type, found.errors.get(index), found.own_errors.get(index, 0.0)),
            keep=index in found.keep,
        )
        for index in search.runs.candidates
        for layer in [search.runs.steps[index].layer]
    )
    return Precision(to, limit, len(sets), found.error_before, found.error, keep, layers)


def _no_progress(done: int, total: int, what: str) -> None:
    """Do nothing."""


def _emulation(model: Model, to: str, sets: Sequence[Sequence[Array]]) -> Emulation:
    if to in NARROW:
        return Emulation(to)
    ranges = Ranges()
    compiled = CompiledModel(model)
    for arrays in sets:
        compiled.create_infer_request().infer(list(arrays), listeners=[ranges])
    return Int8(ranges.found)
