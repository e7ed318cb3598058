"""``ovir view`` in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ovir.system.processes import ChildProcess
from support.processes import PATIENCE, started


class Viewing:
    """A running command."""

    def __init__(self, process: ChildProcess, url: str) -> None:
        self.process = process
        self.url = url

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as response:
            return json.load(response)

    def nodes(self, number: int = 0) -> dict[str, dict[str, str]]:
        """Return the attributes of the nodes of the first graph of a model."""
        graph = self.get(f"api/v1/load_graphs_json?graph_index={number}")["graphs"][0]
        return {node["id"]: {item["key"]: item["value"] for item in node["attrs"]} for node in graph["nodes"]}

    def overlays(self) -> dict[str, dict[str, Any]]:
        """Return the values of nodes by the name and the model of each overlay, such as ``diagnostics of a.xml``."""
        with urllib.request.urlopen(self.url, timeout=PATIENCE) as response:
            data = json.loads(parse_qs(urlsplit(response.url).query)["data"][0])
        found = {}
        for number, model in enumerate(data["nodeDataTargets"]):
            graphs = json.loads(self.get(f"api/v1/load_node_data?node_data_index={number}")["content"])
            content = next(iter(graphs.values()))
            found[f"{content['name']} of {model}"] = {k: item["value"] for k, item in content["results"].items()}
        return found

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; return the exit status and what was printed on stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


@contextmanager
def viewing(*arguments: object, **environment: str) -> Iterator[Viewing]:
    """Start the command on a free port, and kill it in the end."""
    command = [sys.executable, "-m", "ovir", "view", *map(str, arguments), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command, env={**os.environ, **environment}, **pipes) as process:
        yield Viewing(process, process.stdout.readline().strip())
