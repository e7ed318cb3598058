"""``ovir check --device``: reasons why a device cannot run a model, from rules and, with ``--ask``, from the device."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ovir.checks.checker import DEVICES, parse_device
from ovir.checks.recovering import read_recovering
from ovir.cli.options.check_config import Settings
from ovir.cli.options.command import Command, Group
from ovir.cli.terminal.output import print_message
from ovir.diagnostics.codes import DEVICE_DOUBT, DEVICE_REFUSAL, NEWER_THAN_RUNTIME, Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import plural


class TargetDevice(Group):
    """The device whose refusals are reported: from rules and, if it is asked, from itself."""

    device: str | None
    ask: bool

    def add_to(self, command: Command) -> None:
        option = command.under("checks")
        option(
            "--device NPU",
            f"also report what this device does not run according to its documentation: {', '.join(DEVICES)}",
            _device,
        )
        option("--ask", "with --device: also ask the device itself, by OpenVINO's query_model")

    def take(self, settings: Settings) -> None:
        """Take the device that the settings name; raise a usage error if it cannot be asked."""
        if settings.device is None:
            self.refuse("asks a device: give it with --device", "--ask")
        if settings.no_weights:
            self.refuse("and --no-weights exclude each other: a device needs the weights", "--ask")
        self.device = settings.device

    def with_answer(self, name: str, weights: str | None, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """Return the diagnostics of a file together with those of the device, by line.

        A file that ovir cannot read is not given to the device. A device that is not there is not asked again.
        """
        if self.device is None or not self.ask:
            return diagnostics
        from ovir.debugging.device_queries import ask_device

        try:
            model = read_recovering(name, weights, need_weights=False).model
            answer = ask_device(model, name, self.device, weights=weights)
        except ReadError:
            return diagnostics
        except InputError as error:
            print_message(f"not asked: {error.diagnostic.message}")
            self.ask = False
            return diagnostics
        return sorted([*diagnostics, *answer], key=lambda d: d.line or 0)

    def say(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Print the number of reasons found; zero does not mean that the device runs the model."""
        if self.device is None:
            return
        against = doubts = 0
        for diagnostic in diagnostics:
            against += diagnostic.severity is Severity.ERROR
            doubts += diagnostic.code == DEVICE_DOUBT.id
        if against or doubts:
            print_message(f"{self.device}: {plural(against, 'obstacle')}, {plural(doubts, 'doubt')}")
        else:
            source = "by the rules and the device" if self.ask else "by the rules; the device was not asked"
            print_message(f"{self.device}: no obstacle found {source}")


def _device(text: str) -> str:
    try:
        parse_device(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.diagnostic.message) from None
    return text


REASONS = (NEWER_THAN_RUNTIME, DEVICE_REFUSAL, DEVICE_DOUBT)
