"""Random graphs give the results of OpenVINO's CPU plugin, except for known divergences; see ``fuzz.graphs``."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.graphs import make_graph

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle


def test_random_graphs_give_the_results_of_openvino() -> None:
    command = [sys.executable, "-m", "tests.fuzz.graphs", "--count", "100", "--seed", "0"]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_graphs_follow_from_their_seed() -> None:
    assert make_graph(3).net.xml() == make_graph(3).net.xml()
    kinds = {layer.kind for seed in range(30) for layer in make_graph(seed).layers}
    assert len(kinds) > 60
