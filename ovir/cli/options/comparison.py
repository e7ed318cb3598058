"""The other side of a comparison, and the tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ovir.cli.options.command import Command, Group
from ovir.cli.options.values import FileName, raise_usage_error

if TYPE_CHECKING:
    from ovir.analysis.tensor_comparison import Criterion


class DeviceOptions(Group):
    """How a device computes."""

    config: Sequence[tuple[str, str]]
    timeout: float | None

    def add_to(self, command: Command) -> None:
        command.shared("config", "timeout")

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties of the device."""
        return dict(self.config)


class OtherSideOptions(DeviceOptions):
    """What a model is compared with, and within which tolerance."""

    other: FileName | None
    against: FileName | None
    rtol: float | None
    atol: float | None
    metric: str | None
    explain: bool
    strict: bool

    def add_to(self, command: Command) -> None:
        command.argument("other", "OTHER.xml", "a second model to compare with", FileName, nargs="?")
        command.under("comparison")(
            "--against SIDE",
            "openvino:DEVICE (with OTHER.xml: where that runs), onnx:FILE, or an .npz with tensors by name",
            FileName,
        )
        super().add_to(command)
        command.shared("rtol", "atol", "metric")
        meaning = "beyond tolerance: say whether the device agrees with properties that keep it from rounding"
        option = command.under("comparison")
        option("--explain", meaning)
        option("--strict", "exit with status 1 also for a known divergence of the device (docs/divergences.md)")

    @property
    def criterion(self) -> Criterion:
        """Return what decides whether tensors are equal."""
        from ovir.analysis.tensor_comparison import Criterion  # `ovir --help` does not need it

        return Criterion.of(self.rtol, self.atol, self.metric)

    def sides(self) -> tuple[str, str | None]:
        """Return the name of the other side, and the device on which a second model runs."""
        if self.other is None and self.against is None:
            raise_usage_error("there is nothing to compare with: give a second model, or --against", _WAYS)
        if self.other is None:
            return str(self.against), None
        if self.against is not None and not self.against.startswith("openvino"):
            raise_usage_error(f"--against {self.against}: a second model runs in ovir, or on openvino:DEVICE")
        return str(self.other), self.against


_WAYS = "as in --against openvino:CPU, --against onnx:model.onnx or --against recorded.npz"
