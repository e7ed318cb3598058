"""``--workers`` and ``--dask``: where the work on many inputs or files is done."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ovir.cli.arguments import positive, raise_usage_error


def add_workers(parser: argparse.ArgumentParser, default: str = "one for each core") -> None:
    parser.add_argument(
        "--workers", type=positive, metavar="N", help=f"use N processes of this machine (default: {default})"
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="use the workers of a dask cluster, as in tcp://host:8786; local starts one on this machine",
    )


@contextmanager
def opened_workers(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the arguments ``executor`` and ``workers`` for ``ovir.map`` and ``map_tasks``."""
    from ovir.workers.executors import open_executor  # importing it takes longer than most commands run

    if arguments.dask is None:
        yield {"executor": None, "workers": arguments.workers}
        return
    if arguments.dask != "local" and arguments.workers is not None:
        raise_usage_error("--workers is for processes of this machine: give either it or the address of a cluster")
    with open_executor(dask=arguments.dask, workers=arguments.workers) as executor:
        yield {"executor": executor, "workers": None}
