"""``--node-data FILE.json``: results of a command for layers, by which Model Explorer colors them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ovir.cli.options.arguments import options_of, output_with, raise_usage_error
from ovir.model import Model
from ovir.system.files import write_text

if TYPE_CHECKING:
    from ovir.analysis.profile import Profile
    from ovir.analysis.tensor_stats import Ranges
    from ovir.view.overlays import Overlay


def add_node_data(parser: argparse.ArgumentParser, what: str) -> None:
    options_of(parser, "outputs")(
        "--node-data FILE.json", f"also write {what} as data on the nodes of Model Explorer", output_with(".json")
    )


def write_node_data(path: str, overlay: Overlay, model: Model) -> None:
    """Write an overlay for the graphs of a model and its bodies."""
    import json  # which most runs of a command do not need

    write_text(path, json.dumps(overlay.to_dict(model), indent=1, allow_nan=False) + "\n", "write the node data")


def ranges_for_node_data(arguments: argparse.Namespace) -> Ranges | None:
    """Return a listener for a run whose node data is about values; None if no data is wanted, or times.

    Raise a usage error if the options do not go together.
    """
    if arguments.node_data is None:
        return None
    if arguments.engine != "numpy":
        raise_usage_error(f"--node-data is about each layer, but --engine {arguments.engine} runs several as one")
    if arguments.profile:
        return None
    from ovir.analysis.tensor_stats import Ranges

    return Ranges()


def write_run_data(path: str, model: Model, profile: Profile | None, ranges: Ranges | None) -> None:
    """Write the times of a profile, or else the largest absolute value of each layer."""
    from ovir.view.overlays import of_magnitudes, of_times

    if ranges is not None:
        write_node_data(path, of_magnitudes(ranges.ranges), model)
    elif profile is not None:
        write_node_data(path, of_times(profile.timings), model)
