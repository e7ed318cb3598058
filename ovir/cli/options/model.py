"""The model of a command, and the names and shapes of its inputs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ovir.cli.options.command import Command, Group
from ovir.cli.options.values import FileName, raise_usage_error, split_known
from ovir.cli.terminal.output import listed, print_diagnostics, print_message, print_note
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import ModelError
from ovir.diagnostics.wording import plural, readable
from ovir.editing.proof import ProvenEdit
from ovir.graph.layers import Port
from ovir.graph.names import input_named, names_of_inputs
from ovir.inference.pinned_sizes import pinned_sizes
from ovir.ir.source import Source
from ovir.model import Model, read_model
from ovir.ops.infrastructure import Parameter

if TYPE_CHECKING:
    from ovir.checks.recovering import Recovered

STDIN = "-"
"""The path that stands for standard input."""

Shapes = Callable[[Model], Mapping[int, PartialShape]]
"""Returns the shapes of inputs in which a model is inferred while it is read."""


def source_of(path: str) -> Source:
    """Return what a model is read from: a path, or the content of standard input, which can be read once."""
    return sys.stdin.buffer.read() if path == STDIN else path


class ModelOptions(Group):
    """The model of a command, with its weights and extensions, and other options of ``SHARED`` by name."""

    path: FileName
    weights: FileName | None
    extension: Sequence[FileName]
    no_weights: bool = False
    shape: Sequence[str] = ()
    adapt: bool = False
    legacy_io: bool = False

    def __init__(self, *names: str) -> None:
        self.names = names

    def add_to(self, command: Command) -> None:
        command.argument(
            "path", "MODEL.xml", "the .xml, or - for standard input; the weights are in the .bin next to it", FileName
        )
        command.shared("weights", "extension", *self.names)

    @cached_property
    def source(self) -> Source:
        """Return what the model is read from: a path, or the content of standard input."""
        return source_of(self.path)

    def require_file(self, what: str) -> str:
        """Return the path of the model; raise InputError for standard input, which other processes cannot read."""
        if self.path == STDIN:
            raise_usage_error(f"{what} reads the model in other processes: it needs a file, not standard input")
        return self.path

    def open(self) -> Model:
        """Return the model in the shapes that are given; print the sizes that constants pin, and its diagnostics."""
        hints: list[str] = []
        if not self.shape:
            self.refuse("needs --shape, which constants can follow", "--adapt")

        def shapes(model: Model) -> dict[int, PartialShape]:
            found = parse_shapes(model, self.shape)
            hints.extend(shape_hints(model, found))
            return found

        try:
            model = self.read(shapes if self.shape else None)
        except ModelError as error:
            for hint in hints:
                error.add_note(hint)
            if hints and "adapt" in self.names and not self.adapt:
                error.add_note("  hint: --adapt lets constants that hold an old size follow --shape")
            if hints and len(error.diagnostics) > 1:
                error.add_note("  hint: `ovir check` with the same --shape lists all errors")
            raise
        if self.shape:
            print_diagnostics(pinned_sizes(model))
        print_diagnostics(model.diagnostics)
        return model

    def read(self, shapes: Shapes | None = None) -> Model:
        """Return the model; without weights, its constants have no data. Raise ReadError or ModelError."""
        if not self.no_weights:
            return self.read_file(self.source, self.weights, shapes)
        self.refuse("and --no-weights exclude each other", "--weights")
        return read_topology(self.source, shapes, legacy_io=self.legacy_io)

    def read_file(self, source: Source, weights: str | None, shapes: Shapes | None) -> Model:
        """Return the model of a file in the given shapes, which with --adapt its constants follow."""
        adapted = self.adapt and shapes is not None
        model = read_model(source, weights, shapes=None if adapted else shapes, legacy_io=self.legacy_io)
        if adapted and shapes is not None:
            edit = model.reshape(shapes(model), adapt=True)
            print_note(readable(f"{model.path or STDIN}: {'; '.join(about_followers(edit, '--shape'))}"))
        return model

    def recover(self) -> Recovered:
        """Return the model with its faults, in the shapes that are given, and print its diagnostics."""
        from ovir.checks.recovering import read_recovering  # many commands take no faulty model

        if self.no_weights:
            self.refuse("and --no-weights exclude each other", "--weights")
        recovered = read_recovering(
            self.source, self.weights, need_weights=not self.no_weights, legacy_io=self.legacy_io
        )
        states, texts = _state_shapes(recovered, self.shape)
        shapes = parse_shapes(recovered.model, texts)
        hints = []
        if shapes or states:
            hints = shape_hints(recovered.model, shapes)
            worked = not recovered.errors
            recovered.reshape(shapes, states)
            hints = hints if worked and recovered.errors else []
        pinned = pinned_sizes(recovered.model) if shapes and not recovered.errors else ()
        print_diagnostics((*recovered.errors, *recovered.model.diagnostics, *pinned))
        for hint in hints:
            print_message(hint)
        return recovered

    @property
    def absent_weights(self) -> str:
        """Return the name of the .bin beside the .xml, which ``--no-weights`` does not read."""
        name = "model" if self.path == STDIN else os.path.splitext(os.path.basename(self.path))[0]
        return f"{name}.bin"


def read_topology(source: Source, shapes: Shapes | None = None, *, legacy_io: bool = False) -> Model:
    """Return a model whose constants have no data. Raise ReadError or ModelError if it is wrong."""
    from ovir.checks.recovering import read_recovering  # most commands read weights

    recovered = read_recovering(source, need_weights=False, legacy_io=legacy_io)
    if shapes is not None:
        recovered.reshape(shapes(recovered.model))
    if recovered.errors:
        raise ModelError(*recovered.errors)
    return recovered.model


def _state_shapes(recovered: Recovered, texts: Sequence[str]) -> tuple[dict[str, PartialShape], list[str]]:
    """Return the shapes that are given for states by name, and the texts that are for inputs."""
    states = recovered.states.keys() - names_of_inputs(recovered.model)
    shapes: dict[str, PartialShape] = {}
    others = []
    for text in texts:
        name, _, shape = text.rpartition("=")  # names may contain "=", shapes do not
        if name not in states:
            others.append(text)
            continue
        if name in shapes:
            raise_usage_error(f"--shape {text}: state '{name}' has two shapes")
        shapes[name] = parse_shape(text, shape)
    return shapes, others


def shape_hints(model: Model, shapes: Mapping[int, PartialShape]) -> list[str]:
    """Return hints for a model that fails in the shapes of ``--shape``: the types that its inputs have without it."""
    ports = {model.inputs[index]: str(shape)[1:-1] for index, shape in shapes.items()}
    return [
        readable(f"  hint: without --shape {port.any_name}={text} this input is {type_in_file(port)}")
        for port, text in ports.items()
    ]


def about_followers(edit: ProvenEdit, followed: str) -> list[str]:
    """Return sentences about the layers that now follow the batch or the shapes, and about the proof."""
    changed = [layer.key for layer in edit.layers]
    verb = "follows" if len(changed) == 1 else "follow"
    text = f"{plural(len(changed), 'layer')} now {verb} {followed}: {listed(changed)}"
    return [text if changed else f"no layer had to change for {followed}", *edit.notes, edit.verdict]


def type_in_file(port: Port) -> TensorType:
    """Return the type of an input as its Parameter has it, which need not be inferred yet."""
    op = port.layer.operator
    return TensorType(op.element_type, op.shape) if isinstance(op, Parameter) else port.type


def parse_shapes(model: Model, texts: Sequence[str]) -> dict[int, PartialShape]:
    """Return the shape of each input that ``--shape`` texts give, by position."""
    shapes: dict[int, PartialShape] = {}
    for text in texts:
        index, shape = split_input(model, "--shape", text)
        port = model.inputs[index]
        if index in shapes:
            raise_usage_error(f"--shape {text}: input '{port.any_name}' has two shapes")
        shapes[index] = parse_shape(text, shape, f"input '{port.any_name}' is {type_in_file(port)} in the file")
    return shapes


def parse_shape(option: str, text: str, hint: str | None = None) -> PartialShape:
    """Return the shape in the text of an option ``--shape``."""
    if not text.strip():
        raise_usage_error(f"--shape {option}: the shape is missing; the shape of a scalar is []", hint)
    try:
        return PartialShape.parse(text)
    except ValueError as error:
        raise_usage_error(f"--shape {option}: {error}", hint)


def split_name(model: Model, text: str) -> tuple[str | None, str]:
    """Split ``NAME=rest`` at the name of an input; a text without a name, or that is a file, is the rest."""
    if "=" not in text:
        return None, text
    known = names_of_inputs(model)
    name, rest = split_known("--input", text, known.__contains__)
    return (None, text) if name not in known and os.path.isfile(text) else (name, rest)


def split_input(model: Model, option: str, text: str) -> tuple[int, str]:
    """Split ``NAME=rest`` into the position of an input and the rest; the only input needs no name."""
    name, rest = split_name(model, text)
    if name is None and len(model.inputs) != 1:
        names = ", ".join(f"'{port.any_name}'" for port in model.inputs) or "none"
        raise_usage_error(f"{option} {text}: say for which input, as NAME={text}; the model's inputs are {names}")
    return 0 if name is None else input_named(model, name), rest
