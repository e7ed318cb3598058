"""``--node-data FILE.json``: results of a command for layers, by which Model Explorer colors them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovir.cli.options.command import Command, Group
from ovir.cli.options.values import output_with, raise_usage_error
from ovir.model import Model
from ovir.system.files import write_json

if TYPE_CHECKING:
    from ovir.analysis.profile import Profile
    from ovir.analysis.tensor_stats import Ranges
    from ovir.view.overlays import Overlay


class NodeDataOptions(Group):
    """Where the command writes ``what`` for the nodes of Model Explorer."""

    node_data: str | None

    def __init__(self, what: str) -> None:
        self.what = what

    def add_to(self, command: Command) -> None:
        text = f"also write {self.what} as data on the nodes of Model Explorer"
        command.under("outputs")("--node-data FILE.json", text, output_with(".json"))

    def ranges(self, engine: str, *, times: bool) -> Ranges | None:
        """Return a listener for a run whose node data is about values; None if no data is wanted, or ``times``.

        Raise a usage error for an engine that runs several layers as one.
        """
        if self.node_data is None:
            return None
        if engine != "numpy":
            raise_usage_error(f"--node-data is about each layer, but --engine {engine} runs several as one")
        if times:
            return None
        from ovir.analysis.tensor_stats import Ranges

        return Ranges()

    def write(self, overlay: Overlay, model: Model) -> None:
        """Write an overlay for the graphs of a model and its bodies."""
        write_json(str(self.node_data), overlay.to_dict(model), "write the node data")

    def write_run(self, model: Model, profile: Profile | None, ranges: Ranges | None) -> None:
        """Write the times of a profile, or else the largest absolute value of each layer."""
        from ovir.view.overlays import of_magnitudes, of_times

        if ranges is not None:
            self.write(of_magnitudes(ranges.ranges), model)
        elif profile is not None:
            self.write(of_times(profile.timings), model)
