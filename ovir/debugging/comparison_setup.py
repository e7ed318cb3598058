"""Open the other side of a comparison, and find the sets of inputs, from the arguments of a call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from ovir.analysis.input_sizes import ChosenSizes, with_sizes
from ovir.analysis.random_inputs import named_inputs
from ovir.analysis.tensor_comparison import Criterion
from ovir.core.arrays import Array
from ovir.debugging.device_properties import DeviceSetting, Explanation
from ovir.debugging.devices import DeviceSide, EngineDevice, OvirDevice
from ovir.debugging.engines.process import EngineProcess
from ovir.debugging.repeats import Repeats
from ovir.debugging.sides import LayerMode, Partners, Side
from ovir.debugging.tensor_sides import OnnxModel, Recorded, SecondModel
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import InputError, require_counts, require_seconds
from ovir.diagnostics.wording import did_you_mean
from ovir.inference.models import infer_if_edited
from ovir.io.input_files import InputFile, find_inputs, takes_text
from ovir.io.tensor_files import open_npz
from ovir.ir.legacy import upgraded
from ovir.model import Model, opened
from ovir.runtime.inputs import Feeds, collect_inputs

Progress = Callable[[int, int, str], None]
"""Called with the finished amount, the whole amount, and the item in work."""

DEVICES = ("CPU", "GPU", "NPU", "AUTO")
"""The devices of OpenVINO that are named alone, as in ``CPU`` or ``GPU.1``, where ``openvino:CPU`` is meant."""

GivenInputs = Feeds | Sequence[Mapping[Any, Any]] | Sequence[InputFile] | str | os.PathLike[str]


@dataclass(frozen=True)
class InputSet:
    """One set of inputs; calling it loads or draws the arrays of the inputs by position."""

    name: str
    """The name in results, such as ``a/x.npz`` or ``input 2``."""
    load: Callable[[], list[Array]]
    sized: Callable[[], tuple[Model, ChosenSizes]] | None = None
    """Returns the model of static inputs for which random inputs are drawn, with the sizes that were chosen."""

    def __call__(self) -> list[Array]:
        return self.load()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return notes on the chosen sizes, if there are any."""
        if self.sized is None:
            return []
        model, sizes = self.sized()
        return list(sizes.note(model))


def input_sets(model: Model, inputs: GivenInputs, samples: int | None, seed: int) -> list[InputSet]:
    """Return the sets of inputs for a model; each is loaded or drawn when it is asked for.

    ``inputs`` is one set, as a run takes it; a list of mappings; the path of a file, of a folder of files or a pattern,
    see ``find_inputs``; or a list of such files. Without inputs, ``samples`` random sets are drawn, with the seeds from
    ``seed`` on. Raises InputError.
    """
    require_counts(samples=samples)
    if inputs is None:
        seeds = range(seed, seed + (samples or 1))
        sized = cache(partial(with_sizes, model))  # sizes are chosen once, when they are needed

        def drawn(number: int) -> list[Array]:
            return _collected(model, named_inputs(sized()[0], number))

        return [InputSet(f"seed {number}", partial(drawn, number), sized) for number in seeds]
    if samples is not None:
        raise InputError.usage("draws random inputs, but inputs are given", option="samples")
    given: Any = inputs
    if isinstance(inputs, (str, os.PathLike)):
        given, _ = find_inputs(inputs, are_texts=takes_text(model))
    if isinstance(given, Sequence) and not given and model.inputs:
        raise InputError.usage("inputs is empty: expected arrays, or None for random ones")
    if isinstance(given, Sequence) and given and all(isinstance(item, InputFile) for item in given):
        return [InputSet(item.title, partial(_loaded, model, item)) for item in given]
    if not (isinstance(given, Sequence) and given and all(isinstance(item, Mapping) for item in given)):
        given = [given]
    return [InputSet(f"input {number}", partial(_collected, model, item)) for number, item in enumerate(given)]


def _loaded(model: Model, file: InputFile) -> list[Array]:
    try:
        return _collected(model, file.load(model))
    except InputError as error:
        raise InputError(*(replace(d, file=file.path, line=None) for d in error.diagnostics)) from None


def _collected(model: Model, feeds: Any) -> list[Array]:
    return collect_inputs(model, feeds, model.input_index)


Against = Model | str | os.PathLike[str] | Mapping[str, Array]


def as_model(model: Model | str | os.PathLike[str]) -> Model:
    """Return a model as OpenVINO runs it: inferred, and of the present version of the format."""
    model = opened(model)
    infer_if_edited(model)
    return upgraded(model)


@dataclass(frozen=True)
class ComparisonOptions:
    """The other side of a comparison, and its options, which ``ovir.compare`` explains."""

    against: Against
    criterion: Criterion
    inputs: GivenInputs = None
    samples: int | None = None
    seed: int = 0
    device: str | None = None
    config: Mapping[str, str] | None = None
    timeout: float | None = None
    mode: LayerMode | None = None
    explain: bool = False
    repeat: int | None = None
    emulate: str | None = None
    """The type, f16 or bf16, in which ovir computes in place of the device."""

    def __post_init__(self) -> None:
        require_counts(2, repeat=self.repeat)
        if self.mode not in (None, "isolated", "cumulative"):
            raise InputError.usage(f"mode must be 'isolated' or 'cumulative', got {self.mode!r}")

    def explanation(
        self, settings: Sequence[DeviceSetting], agrees: Callable[[ComparisonOptions], bool]
    ) -> Explanation | None:
        """Return what comparisons with exact properties of the device tell; None if they are not wanted.

        ``agrees`` compares once more, with other options.
        """
        if not self.explain:
            return None
        given = dict(self.config or {})
        return Explanation.of(settings, lambda config: agrees(replace(self, config={**given, **config}, explain=False)))

    def emulated(self, element_type: str) -> ComparisonOptions:
        """Return the options of the same comparison with ovir, which computes in a type of 16 bits, as the device."""
        other: dict[str, Any] = dict.fromkeys(("config", "timeout", "device", "repeat", "mode"))
        return replace(self, emulate=element_type, explain=False, **other)

    @contextmanager
    def open_side(self, model: Model) -> Iterator[Side]:
        """Yield the other side for a model.

        Raises InputError for options that do not fit together, ReadError for files that cannot be read.
        """
        with ExitStack() as files, closing(self._side(model, files)) as side:
            side.open()
            yield side

    def _side(self, model: Model, files: ExitStack) -> Side:
        against, timeout, repeats = self.against, self.timeout, Repeats(self.repeat)
        kind, rest = _kind(against)
        require_seconds(timeout=timeout)
        if self.device is not None and kind != "model":
            raise InputError.usage("device= says where a second model runs, but against= names none")
        if kind == "engine":
            device = self._engine_device(rest, model) if self.emulate is None else OvirDevice(model, self.emulate)
            return DeviceSide(device, Partners(model, model), repeats)
        if kind == "model":
            assert isinstance(against, (Model, str, os.PathLike))
            other = as_model(against)
            partners = Partners(model, other)
            if self.device is not None:
                return DeviceSide(self._engine_device(self.device, other), partners, repeats)
            self._refuse_config()
            if self.mode == "isolated" or self.repeat is not None or self.emulate is not None:
                return DeviceSide(OvirDevice(other, self.emulate), partners, repeats)
            return SecondModel(partners, other.path or "the other model")
        if self.mode == "isolated":
            raise InputError.usage("layers run alone only on a device or in a second model: the other side is neither")
        if kind == "onnx":
            return OnnxModel(EngineProcess("onnxruntime", self.config, timeout=timeout), rest, model, repeats)
        self._refuse_config()
        if self.repeat is not None:
            raise InputError.usage("repeats runs, but a recording is of one run", option="repeat")
        if isinstance(against, Mapping):
            return Recorded(model, {str(key): np.asarray(value) for key, value in against.items()}, "recorded tensors")
        return Recorded(model, files.enter_context(open_npz(rest)), rest)

    def sets(self, model: Model, side: Side) -> list[InputSet]:
        """Return the sets of inputs with which a model is compared: by default recorded ones, or random ones."""
        if side.is_recorded and self.samples is not None:
            raise InputError.usage("draws random inputs, which a recording was not made with", option="samples")
        inputs = side.recorded_inputs() if side.is_recorded and self.inputs is None else self.inputs
        return input_sets(model, inputs, self.samples, self.seed)

    def _engine_device(self, name: str, model: Model) -> EngineDevice:
        if name.partition(":")[0] != "openvino":
            raise InputError.usage(f"models in OpenVINO's format run on openvino:DEVICE, not on {name!r}")
        return EngineDevice(EngineProcess(name, self.config, timeout=self.timeout), model)

    def _refuse_config(self) -> None:
        if self.config or self.timeout is not None:
            reason = "needs openvino:DEVICE or onnx:FILE to compare with"
            raise InputError.usage(reason, option="config" if self.config else "timeout")


def _kind(against: object) -> tuple[str, str]:
    """Return the kind of the other side, and its name or path."""
    if isinstance(against, Model):
        return "model", ""
    if isinstance(against, Mapping):
        return "recorded", ""
    if isinstance(against, (str, os.PathLike)):
        text = os.fspath(against)
        head, _, tail = text.partition(":")
        if head == "openvino" and tail:
            return "engine", text
        if head == "onnx" and tail:
            return "onnx", tail
        for ending, kind in ((".xml", "model"), (".onnx", "onnx"), (".npz", "recorded")):
            if text.lower().endswith(ending):
                return kind, text
    expected = "expected openvino:DEVICE, onnx:FILE, an .npz, an .xml or a Model"
    name = str(against)
    kind, _, rest = name.partition(":")
    hint = did_you_mean(kind, ("openvino", "onnx"), f"{{}}:{rest or '...'}")
    if name.upper().partition(".")[0] in DEVICES:
        hint = f"the device is openvino:{name.upper()}"
    raise InputError.usage(f"cannot compare with {against!r}: {expected}", hint=hint)
