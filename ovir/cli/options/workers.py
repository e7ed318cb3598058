"""Who works on many inputs or files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ovir.cli.options.command import Command, Group
from ovir.cli.options.values import positive, raise_usage_error


class WorkerOptions(Group):
    """The workers of a command."""

    workers: int | None
    dask: str | None

    def __init__(self, default: str = "one for each core") -> None:
        self.default = default

    def add_to(self, command: Command) -> None:
        option = command.under("many inputs")
        option("--workers N", f"use N processes of this machine (default: {self.default})", positive)
        option(
            "--dask ADDRESS",
            "use the workers of a dask cluster, as in tcp://host:8786; local starts one on this machine",
        )

    @property
    def are_given(self) -> bool:
        """Return whether the command line says who works."""
        return self.workers is not None or self.dask is not None

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments ``executor`` and ``workers`` for ``ovir.map`` and ``Tasks``."""
        from ovir.workers.executors import open_executor  # importing it takes longer than most commands run

        if self.dask is None:
            yield {"executor": None, "workers": self.workers}
            return
        if self.dask != "local" and self.workers is not None:
            raise_usage_error("--workers is for processes of this machine: give either it or the address of a cluster")
        with open_executor(dask=self.dask, workers=self.workers) as executor:
            yield {"executor": executor, "workers": None}
