"""Properties of OpenVINO's devices that change numbers: one table, ``PROPERTIES``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ovir.debugging.engines.process import EngineMissingError
from ovir.graph.layers import Layer
from ovir.inference.layer_weights import compression_of
from ovir.lowering.releases import Release
from ovir.model import Model


def compressed_weights(layer: Layer) -> Iterator[str]:
    """Yield the element types of the weights of a layer that are stored with a scale."""
    for port in layer.inputs if layer.type in ("MatMul", "Convolution", "Gather") else ():
        if port.source is not None and " with scale" in (stored := compression_of(port.source)):
            yield stored.partition(" ")[0]


def fake_quantizes(model: Model) -> int:
    """Return the number of FakeQuantize layers."""
    return sum(layer.type == "FakeQuantize" for layer in model.walk())


def _is_quantized(model: Model) -> bool:
    return fake_quantizes(model) > 0 or any(kind for layer in model.walk() for kind in compressed_weights(layer))


def _has_key_cache(model: Model) -> bool:
    types = {layer.type for layer in model.walk()}
    return "PagedAttentionExtension" in types or {"ScaledDotProductAttention", "ReadValue"} <= types


@dataclass(frozen=True)
class DeviceProperty:
    """A property of devices that changes numbers."""

    name: str
    devices: tuple[str, ...]
    since: Release
    """The first release whose devices have it."""
    exact: str
    """The value with which a difference is no rounding by this property."""
    effect: str
    """What the device does with other values."""
    same: tuple[str, ...] = ()
    """Other values that do not change numbers."""
    concerns: Callable[[Model], object] = lambda model: True
    """Whether it matters for a model."""
    is_shown: bool = True
    """Whether a device that has it tells its value."""


PROPERTIES = (
    DeviceProperty(
        *("INFERENCE_PRECISION_HINT", ("CPU", "GPU"), (2023, 0), "f32"),
        "real numbers are computed in a type of 16 bits",
        same=("dynamic",),
    ),
    DeviceProperty(
        *("DYNAMIC_QUANTIZATION_GROUP_SIZE", ("CPU", "GPU"), (2024, 1), "0"),
        "inputs of products with compressed weights are rounded to 8 bits, in groups of this size",
        concerns=_is_quantized,
    ),
    DeviceProperty(
        *("LP_TRANSFORMS_MODE", ("CPU", "GPU"), (2022, 1), "NO"),
        "convolutions and products behind FakeQuantize are computed in 8 bits",
        concerns=fake_quantizes,
        is_shown=False,
    ),
    DeviceProperty(
        *("KV_CACHE_PRECISION", ("CPU", "GPU"), (2024, 2), "f32"),
        "keys and values of attention that a state holds are rounded to this type",
        concerns=_has_key_cache,
    ),
    DeviceProperty(
        *("KEY_CACHE_PRECISION", ("CPU",), (2025, 1), "f32"),
        "keys alone; takes precedence over KV_CACHE_PRECISION",
        concerns=_has_key_cache,
    ),
    DeviceProperty(
        *("VALUE_CACHE_PRECISION", ("CPU",), (2025, 1), "f32"),
        "values alone; takes precedence over KV_CACHE_PRECISION",
        concerns=_has_key_cache,
    ),
    DeviceProperty(
        *("ACTIVATIONS_SCALE_FACTOR", ("GPU",), (2025, 0), "0"),
        "inputs of convolutions and products are divided by this number in f16, and the results multiplied by it",
        same=("-1", "-1.0", "0.0"),
    ),
    DeviceProperty(
        *("CPU_DENORMALS_OPTIMIZATION", ("CPU",), (2022, 3), "NO"), "numbers below 2^-126 become 0 in most layers"
    ),
    DeviceProperty(
        *("EXECUTION_MODE_HINT", ("GPU", "NPU"), (2023, 0), "ACCURACY"),
        "other properties that are not set favor speed; on the CPU, ACCURACY only sets "
        "INFERENCE_PRECISION_HINT, DYNAMIC_QUANTIZATION_GROUP_SIZE and KV_CACHE_PRECISION",
    ),
)


@dataclass(frozen=True)
class DeviceSetting:
    """A property of a device with a value that changes numbers of a model."""

    name: str
    value: str | None
    """The value that the device tells; None if it tells none."""
    exact: str
    """The value to set, to tell rounding from a fault."""
    effect: str
    """What the device does because of it."""

    def __str__(self) -> str:
        shown = "is on by default" if self.value is None else f"is {self.value}"
        return f"{self.name} {shown}: {self.effect}"

    def to_dict(self) -> dict[str, Any]:
        """Return the setting for JSON."""
        return asdict(self)


def settings_that_round(model: Model, device: str, values: Mapping[str, str]) -> tuple[DeviceSetting, ...]:
    """Return the properties by which a device, such as ``CPU`` or ``HETERO:GPU,CPU``, changes numbers of a model.

    ``values`` are the properties that it tells, and those that were set.
    """
    return tuple(
        DeviceSetting(row.name, values.get(row.name), row.exact, row.effect)
        for row in PROPERTIES
        if any(kind in device for kind in row.devices)
        and (row.name in values or not row.is_shown)
        and values.get(row.name) not in (row.exact, *row.same)
        and row.concerns(model)
    )


@dataclass(frozen=True)
class Explanation:
    """The outcome of a comparison with other properties of the device."""

    config: Mapping[str, str]
    """The fewest properties with which the comparison agrees; if it never does, all that were tried."""
    within: bool
    """Whether it agrees."""
    problem: str | None = None
    """Why the device refuses these properties."""
    excess: float | None = None
    """If the device computes in f16 or bf16, and agrees in f32: how many times larger its errors are than those of an
    emulation that rounds to the same type. None if this is not known."""

    @property
    def is_by_precision(self) -> bool:
        """Return whether the device agrees in f32, and no other property matters."""
        return self.within and list(self.config) == ["INFERENCE_PRECISION_HINT"]

    @classmethod
    def of(cls, settings: Sequence[DeviceSetting], agrees: Callable[[Mapping[str, str]], bool]) -> Explanation | None:
        """Set all properties to exact values, then leave out each without which the comparison agrees, too.

        Return None if there are no properties.
        """
        config = {setting.name: setting.exact for setting in settings}
        if not config:
            return None
        try:
            if not agrees(config):
                return cls(config, within=False)
        except EngineMissingError as error:
            return cls(config, within=False, problem=error.diagnostic.message)
        for setting in reversed(settings):
            fewer = {name: value for name, value in config.items() if name != setting.name}
            if fewer and agrees(fewer):
                config = fewer
        return cls(config, within=True)

    def __str__(self) -> str:
        listed = " ".join(f"{name}={value}" for name, value in self.config.items())
        if self.problem is not None:
            return f"nothing is explained: {self.problem}"
        if self.excess is not None and self.excess > _ROOM:
            rounding = "a run in ovir that rounds to the same type (--emulate)"
            return f"agrees with {listed}, but has {self.excess:,.0f} times the error of {rounding}: a fault"
        if self.within:
            return f"agrees with {listed}: rounding of the device, no fault"
        return f"beyond tolerance with {listed}, too: no rounding by these properties explains it"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation for JSON."""
        return {"within": self.within, "config": dict(self.config), "problem": self.problem, "excess": self.excess}


_ROOM = 10
"""How many times larger than in an emulation errors of rounding may be, since devices round sums and functions, too."""
