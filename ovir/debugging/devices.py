"""Whole models and small parts of them on a device, or in ovir in its place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ovir.core.arrays import Array
from ovir.core.interrupts import temporary_folder
from ovir.engines.process import Engine, Loaded
from ovir.model import Model, save_model
from ovir.runtime.compiled import CompiledModel


class Device(Protocol):
    """What runs models. Use it in a ``with`` block."""

    precision: str | None
    """The element type in which the device computes, once it has compiled a model and if it says so."""

    @property
    def description(self) -> str:
        """Return the name of the device with its version."""

    def open(self) -> None:
        """Make sure that the device is there; raise EngineMissingError if it is not."""

    def run(self, model: Model, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs of a model for inputs by position; the model is compiled for this run alone.

        Raises EngineError or EngineDiedError.
        """

    def run_whole(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs of the model that the device was made for; it stays compiled."""

    def release(self) -> None:
        """Release the compiled model."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class EngineDevice:
    """A device of another engine, which reads models from files."""

    def __init__(self, engine: Engine, model: Model) -> None:
        self.engine = engine
        self._model = model
        self._loaded: Loaded | None = None
        self._stack = ExitStack()
        self._folder: Path | None = None
        self.precision: str | None = None
        """The element type in which the device computes, once it has compiled a model and if it says so."""

    @property
    def description(self) -> str:
        return self.engine.description

    def open(self) -> None:
        self.engine.open()

    def run(self, model: Model, inputs: Sequence[Array]) -> list[Array]:
        loaded = self._load(model, "part")
        try:
            return self.engine.infer(loaded, inputs, [port.element_type for port in model.inputs])
        finally:
            self.engine.unload(loaded)

    def run_whole(self, inputs: Sequence[Array]) -> list[Array]:
        if self._loaded is None or self._loaded.start != self.engine.starts:
            self._loaded = self._load(self._model, "model")
        return self.engine.infer(self._loaded, inputs, [port.element_type for port in self._model.inputs])

    def release(self) -> None:
        if self._loaded is not None:
            self.engine.unload(self._loaded)
            self._loaded = None

    def _load(self, model: Model, name: str) -> Loaded:
        if self._folder is None:
            self._folder = self._stack.enter_context(temporary_folder())
        path = self._folder / f"{name}.xml"
        save_model(model, path)
        try:
            loaded = self.engine.load(path)
            precision = loaded.facts.get("precision")
            self.precision = None if precision == "dynamic" else precision
            return loaded
        finally:
            if name == "part":  # the engine has read or mapped it
                for suffix in (".xml", ".bin"):
                    os.unlink(path.with_suffix(suffix))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.close()
        self._stack.close()


class OvirDevice:
    """ovir itself, in place of a device."""

    description = "ovir"
    precision: str | None = None

    def __init__(self, model: Model) -> None:
        self._model = model
        self._compiled: CompiledModel | None = None

    def open(self) -> None:
        """Do nothing."""

    def run(self, model: Model, inputs: Sequence[Array]) -> list[Array]:
        return list(CompiledModel(model)(list(inputs)).values())

    def run_whole(self, inputs: Sequence[Array]) -> list[Array]:
        if self._compiled is None:
            self._compiled = CompiledModel(self._model)
        return list(self._compiled.create_infer_request().infer(list(inputs)).values())

    def release(self) -> None:
        self._compiled = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
