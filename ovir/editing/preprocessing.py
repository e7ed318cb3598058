"""Layers that prepare an input of a model: a model that takes normalized NCHW floats then takes images as files hold
them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from ovir.building.creation import create_layer
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, converted_values, f32, not_a_value, string, value_range
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, as_shape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.diagnostic import in_place_of
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural
from ovir.editing.keys import refuse
from ovir.editing.layer_edits import insert_after
from ovir.editing.transaction import editing, with_types
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.graph.names import free_name
from ovir.graph.rt_info import RtElement
from ovir.inference.models import set_parameters
from ovir.ops.convert import is_exact
from ovir.ops.infrastructure import Parameter

MODES = "linear", "nearest", "cubic", "bilinear_pillow", "bicubic_pillow"
"""The modes of Interpolate with which images are resized."""

Factors = float | Sequence[float]
"""One number for all channels, or one for each."""


@dataclass(frozen=True)
class Preprocessing:
    """The preparation of an input before the model reads it, in the order of the fields."""

    element_type: str | ElementType | None = None
    layout: str | None = None
    model_layout: str | None = None
    resize: str | None = None
    size: Sequence[Any] | None = None
    reverse_channels: bool = False
    mean: Factors | None = None
    scale: Factors | None = None


def preprocess(model: LayerGraph, key: str | int | Port, wanted: Preprocessing) -> Port:
    """Let the model prepare an input itself; see ``Model.preprocess``."""
    if model.holder is not None:
        refuse("the inputs of a body cannot be preprocessed: its port map feeds them")
    with_types(model)
    port = model.inputs[model.input_index(key)]
    steps = _Steps(port, wanted)
    with editing(model):
        steps.set_parameter()
        last = steps.chain({layer.name for layer in model.layers})
        if isinstance(last, Layer):
            insert_after(model, port, last, (), None)
    return port


class _Steps:
    """The new type of an input, and the layers that turn it into the type that the model takes."""

    def __init__(self, port: Port, wanted: Preprocessing) -> None:
        self._port = port
        self._wanted = wanted
        self._target = port.type
        self._own_layout = self._layout_of_model()
        self._layout = self._checked_layout(wanted.layout, "layout") if wanted.layout else self._own_layout
        if sorted(self._layout) != sorted(self._own_layout):
            self._refuse(f"the layouts {self._layout!r} and {self._own_layout!r} have different letters")
        if wanted.size is not None and wanted.resize is None:
            self._refuse("a size is given, but no resize")
        if wanted.resize is not None and wanted.resize not in MODES:
            self._refuse(f"unknown resize {wanted.resize!r}: expected {', '.join(MODES)}")
        if (wanted.mean is not None or wanted.scale is not None) and not self._target.element_type.holds_reals:
            self._refuse(f"the model takes {self._target.element_type} here, so that nothing can be normalized")
        self._element_type = self._given_type()
        self._computed_in = self._type_of_steps()

    # ----- what the input becomes

    def set_parameter(self) -> None:
        """Give the Parameter the element type, shape and layout that the input has from now on."""
        dims = list(self._target.shape.dims) if self._own_layout else []
        if self._wanted.resize is not None:
            for letter, size in zip("HW", self._size(), strict=True):
                dims[self._axis(letter)] = size
        shape = self._target.shape
        if dims:
            shape = PartialShape([dims[self._own_layout.index(letter)] for letter in self._layout])
        set_parameters({self._port.layer: Parameter(element_type=self._element_type, shape=shape)})
        if self._wanted.layout:
            attributes = ("name", "layout"), ("version", "0"), ("layout", f"[{','.join(self._layout)}]")
            self._port.rt_info = self._port.rt_info.with_marks(RtElement(1, "attribute", attributes))
        self._port.inferred = TensorType(self._element_type, shape)

    def _given_type(self) -> ElementType:
        given = self._wanted.element_type
        if given is None:
            return self._target.element_type
        try:
            found = given if isinstance(given, ElementType) else ElementType.parse(given)
        except ValueError as error:
            raise InputError.usage(f"invalid element type for input '{self._port.any_name}': {error}") from None
        if (found == string) != (self._target.element_type == string):
            self._refuse(f"the model takes {self._target.element_type} here, to which {found} cannot be converted")
        return found

    def _type_of_steps(self) -> ElementType:
        """Return the type in which the new layers compute: the one that the model takes, or f32 if that is wider and
        the other lacks values of the fed type, such as 65535 in f16."""
        target, wanted = self._target.element_type, self._wanted
        computes = any(step is not None for step in (wanted.mean, wanted.scale, wanted.resize))
        is_narrow = target.holds_reals and target.bits < f32.bits
        return f32 if computes and is_narrow and not is_exact(self._element_type, target) else target

    def _size(self) -> tuple[Dimension, Dimension]:
        try:
            height, width = as_shape(self._wanted.size).dims if self._wanted.size is not None else (UNKNOWN, UNKNOWN)
        except (ValueError, TypeError) as error:
            self._refuse(f"size must be a height and a width, got {self._wanted.size!r} ({error})")
        return height, width

    # ----- the layers

    def chain(self, taken: set[str]) -> LayerOrPort:
        """Return the last of the new layers, which are in no model yet; the input itself if there are none."""
        last: LayerOrPort = self._port
        for step, kind, version, others, attributes in self._operations():
            name = free_name(f"{self._port.layer.name}/{step}", taken)
            with in_place_of(self._port.layer.place):
                last = create_layer(kind, [last, *others], attributes, version=version, name=name)
        return last

    def _operations(self) -> Iterator[tuple[str, str, str, list[Array], dict[str, Any]]]:
        """Yield for each step its name, its operation with the opset, the other inputs, and the attributes."""
        wanted, target = self._wanted, self._target
        if self._element_type != self._computed_in:
            yield "convert", "Convert", "opset1", [], {"destination_type": self._computed_in}
        if self._layout != self._own_layout:
            order = [self._layout.index(letter) for letter in self._own_layout]
            yield "transpose", "Transpose", "opset1", [np.array(order)], {}
        if wanted.resize is not None:
            axes = [self._axis(letter) for letter in "HW"]
            sizes = [self._static(axis) for axis in axes]
            attributes: dict[str, Any] = {"mode": wanted.resize, "shape_calculation_mode": "sizes"}
            if wanted.resize == "bicubic_pillow":
                attributes["cube_coeff"] = -0.5  # the cubic function of Pillow
            yield "resize", "Interpolate", "opset11", [np.array(sizes), np.array(axes)], attributes
        if wanted.reverse_channels:
            axis = self._axis("C")
            order = list(range(self._static(axis)))[::-1]
            yield "reverse_channels", "Gather", "opset8", [np.array(order), np.array(axis)], {}
        steps = ("mean", "Subtract", wanted.mean), ("scale", "Divide", wanted.scale)
        factors = {step: self._factors(given, step) for step, _, given in steps if given is not None}
        self._require_finite(factors)
        for step, kind, _ in steps:
            if step in factors:
                yield step, kind, "opset1", [factors[step]], {}
        if self._computed_in != target.element_type:
            yield "convert_result", "Convert", "opset1", [], {"destination_type": target.element_type}

    def _factors(self, given: Factors, name: str) -> Array:
        """Return one number, or one for each channel, as an array that broadcasts with the input."""
        try:
            numbers = np.asarray(given, np.float64)
        except (ValueError, TypeError):
            self._refuse(f"{name} must be numbers, got {given!r}")
        if numbers.ndim > 1 or not numbers.size or not np.isfinite(numbers).all():
            self._refuse(f"{name} must be one finite number, or one for each channel, got {given!r}")
        if name == "scale" and not numbers.all():
            self._refuse(f"scale must not contain zeros, because it is a divisor: {given!r}")
        held = self._held(numbers, name)
        if numbers.size == 1:
            return held.reshape(())
        axis = self._axis("C")
        channels = self._target.shape[axis]
        if channels.is_static and channels.get_length() != numbers.size:
            self._refuse(f"{name} has {numbers.size} numbers for {plural(channels.get_length(), 'channel')}")
        shape = [1] * len(self._own_layout)
        shape[axis] = numbers.size
        return held.reshape(shape)

    def _held(self, numbers: Array, name: str) -> Array:
        """Return numbers in the type in which the layers compute; refuse those that become infinite, and divisors so
        small that the type lacks digits or makes 0 of them."""
        kind = self._computed_in
        hint = f"the new layers compute in {kind} here: normalize the values before a run"
        held, lost = converted_values(numbers, kind)
        if lost.any():
            self._refuse(f"{name}: {not_a_value(numbers[lost].flat[0], kind)}", hint)
        least = float(ml_dtypes.finfo(kind.to_dtype()).smallest_normal)  # type: ignore[no-untyped-call]
        if name == "scale" and (small := np.abs(numbers) < least).any():
            number = numbers[small].flat[0]
            self._refuse(
                f"scale: {number} is too small a divisor for {kind}, whose normal numbers begin at {least:.3g}", hint
            )
        return held

    def _require_finite(self, factors: Mapping[str, Array]) -> None:
        """Refuse numbers with which the least or greatest value of images becomes infinite.

        Types of up to 16 bits are images with all of their values. Wider ones may hold anything, but mean and scale
        normalize images of at least 16 bits.
        """
        given, target = self._element_type, self._target.element_type
        if not given.is_integral or not target.holds_reals or (given.bits > 16 and not factors):
            return
        mean, scale = (
            factors.get(step, np.float64(one)).astype(np.float64) for step, one in (("mean", 0), ("scale", 1))
        )
        least, greatest = value_range(given)
        for value in max(least, -(1 << 15)), min(greatest, (1 << 16) - 1):
            difference = np.asarray(value - mean)
            for results, kind in (difference, self._computed_in), (np.asarray(difference / scale), target):
                _, lost = converted_values(results, kind)
                if lost.any():
                    self._refuse_too_large(value, not_a_value(f"{results[lost].flat[0]:g}", kind), bool(factors))

    def _refuse_too_large(self, value: float, wrong: str, is_normalized: bool) -> NoReturn:
        if is_normalized:
            self._refuse(f"with this mean and scale, {value} becomes a number that is too large: {wrong}")
        hint = f"give a scale, such as {value}, or a type with smaller values"
        self._refuse(f"{self._element_type} has numbers that are too large: {wrong}", hint)

    # ----- layouts

    def _layout_of_model(self) -> str:
        """Return the letters of the axes that the model takes; empty if they do not matter."""
        given = self._wanted.model_layout or recorded_layout(self._port)
        if given:
            return self._checked_layout(given, "model_layout")
        wanted = self._wanted
        has_list = any(np.size(factors) > 1 for factors in (wanted.mean, wanted.scale) if factors is not None)
        if not (wanted.layout or wanted.resize or wanted.reverse_channels or has_list):
            return ""
        if self._target.shape.rank != 4:
            self._refuse(
                f"its layout is not known, because its shape is {self._target.shape}",
                "give the layout of the model, such as NC: --model-layout, or model_layout= in Python",
            )
        return "NCHW"

    def _checked_layout(self, text: str, name: str) -> str:
        if not text.isalpha() or not text.isascii() or not text.isupper() or len(set(text)) != len(text):
            self._refuse(f"{name} must be distinct capital letters such as NHWC, got {text!r}")
        if len(text) != self._target.shape.rank:
            self._refuse(f"{name} {text!r} does not fit the shape {self._target.shape}")
        return text

    def _axis(self, letter: str) -> int:
        if letter not in self._own_layout:
            self._refuse(f"the layout {self._own_layout!r} has no axis {letter!r}")
        return self._own_layout.index(letter)

    def _static(self, axis: int) -> int:
        """Return the size of an axis that the model takes."""
        dim = self._target.shape[axis]
        if not dim.is_static:
            hint = "reshape the model first: images are resized to the size of its input"
            self._refuse(f"axis {axis} of {self._target.shape} has no fixed size", hint)
        return dim.get_length()

    def _refuse(self, message: str, hint: str | None = None) -> NoReturn:
        refuse(f"input '{self._port.any_name}' cannot be preprocessed: {message}", self._port.layer, hint)


def recorded_layout(port: Port) -> str:
    """Return the layout that the runtime information of an input has, as OpenVINO writes it; empty for others."""
    for element in port.rt_info.elements:
        if element.key == "layout":
            letters = dict(element.attributes).get("layout", "").strip("[]").split(",")
            return "".join(letters) if all(len(letter) == 1 and letter.isalpha() for letter in letters) else ""
    return ""
