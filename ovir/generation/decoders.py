"""Decoders step by step: tokens in, the logits of the next token out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.debugging.engines.process import LoadedModel
from ovir.diagnostics.codes import RUN
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, RunError
from ovir.graph.layers import Port
from ovir.model import Model
from ovir.ops.state import ReadValueBase
from ovir.runtime.compiled import CompiledModel

Run = Callable[[list[Array], bool], Sequence[Array]]
"""A function that runs a decoder: it returns the outputs for the inputs, both by position. The first run, for which the
last argument is True, begins with no state."""


def in_ovir(compiled: CompiledModel) -> Run:
    """Return the function that runs a decoder in ovir."""
    request = compiled.create_infer_request()

    def run(inputs: list[Array], is_first: bool) -> Sequence[Array]:
        if is_first:
            request.reset_state()
        return list(request.infer(inputs).values())

    return run


def on_engine(loaded: LoadedModel) -> Run:
    """Return the function that runs a decoder that an engine has loaded."""
    return lambda inputs, is_first: loaded.infer(inputs, keeps_state=not is_first)


class Decoder:
    """A decoder with its past: in its state, in inputs of past keys and values, or as all tokens once more."""

    def __init__(self, model: Model, run: Run) -> None:
        """Recognize the inputs of the model; raise InputError if it is not a decoder of tokens."""
        self.model = model
        self._run = run
        self._logits = _output(model, "logits")
        shape = model.outputs[self._logits].shape
        self.vocabulary = int(shape[-1]) if shape.rank and shape[-1].is_static else None
        """The number of logits, if it is known."""
        inputs = {_name(port): index for index, port in enumerate(model.inputs)}
        if "input_ids" not in inputs:
            raise _unusable(model, f"no input 'input_ids': its inputs are {', '.join(map(repr, inputs)) or 'none'}")
        self._past = {
            index: _output(model, name.replace(_PAST, "present"))
            for name, index in inputs.items()
            if name.startswith(_PAST)
        }
        """For each input of past keys or values, by position, the output that it is fed with."""
        self._forgets = not self._past and not any(isinstance(x.operator, ReadValueBase) for x in model.layers)
        self._makers = {index: _maker(model, name) for name, index in inputs.items() if index not in self._past}
        self._arrays: dict[int, Array] = {}
        self.seen: list[int] = []
        """The tokens of the text until now."""

    def forget(self) -> None:
        """Begin another text."""
        self.seen, self._arrays = [], {}

    def step(self, tokens: Sequence[int]) -> Array:
        """Return the logits of the token after these and those before them."""
        start = len(self.seen)
        self.seen += tokens
        first = 0 if self._forgets else start
        inputs = []
        for index, port in enumerate(self.model.inputs):
            array = self._past_array(index, port) if index in self._past else self._makers[index](self.seen, first)
            inputs.append(array.astype(port.element_type.to_dtype(), copy=False))
        outputs = self._run(inputs, start == 0)
        self._arrays = {index: outputs[output] for index, output in self._past.items()}
        logits: Array = outputs[self._logits][0, -1]
        if np.isnan(logits).any():
            place = self.model.outputs[self._logits].layer.place
            hint = "`ovir run --watch nan` shows the layer that made the first NaN"
            raise RunError(diagnose(RUN, f"the logits after {len(self.seen):,} tokens hold NaN", place, hint=hint))
        return logits

    def _past_array(self, index: int, port: Port) -> Array:
        """Return past keys or values: those of the last step, or none before the first."""
        if index in self._arrays:
            return self._arrays[index]
        sizes = [int(size) if size.is_static else int(axis == 0) for axis, size in enumerate(port.shape)]
        return np.zeros(sizes, port.element_type.to_dtype())


_PAST = "past_key_values"

Maker = Callable[[list[int], int], Array]
"""A function that makes an input from all tokens until now, and the number of those that the decoder keeps."""

_MAKERS: dict[str, Maker] = {
    "input_ids": lambda seen, first: np.array([seen[first:]], np.int64),
    "attention_mask": lambda seen, first: np.ones((1, len(seen)), np.int64),
    "position_ids": lambda seen, first: np.arange(first, len(seen), dtype=np.int64)[np.newaxis],
    "beam_idx": lambda seen, first: np.zeros(1, np.int32),
}


def _maker(model: Model, name: str) -> Maker:
    if name not in _MAKERS:
        raise _unusable(model, f"an input '{name}', for which a prompt gives no value")
    return _MAKERS[name]


def _output(model: Model, name: str) -> int:
    for index, port in enumerate(model.outputs):
        if name in port.names:
            return index
    raise _unusable(model, f"no output '{name}': its outputs are {', '.join(p.any_name for p in model.outputs)}")


def _name(port: Port) -> str:
    """Return the name that tells the purpose of an input."""
    known = [name for name in port.names if name in _MAKERS or name.startswith(_PAST)]
    return known[0] if known else port.any_name


def _unusable(model: Model, what: str) -> InputError:
    return InputError.usage(f"the model is not a decoder of text: it has {what}", Place(model.path))
