"""Running the command line in this process."""

from pathlib import Path

import numpy as np
import pytest
from support.builder import Net
from support.command import Cli, Outcome

from ovir.cli.main import main


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """``cli("run", path)``: status, stdout and stderr. Never a traceback."""

    def call(*arguments: object) -> Outcome:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Outcome(status, captured.out, captured.err)

    return call


def gather_net() -> Net:
    """out = data[indices], data [?,3] and indices i64[4]; then a MatMul with a constant, and SoftMax."""
    net = Net()
    data, indices = net.parameter("data", "?,3"), net.parameter("indices", "4", "i64")
    rows = net.op("Gather", data, indices, net.const(np.int64(0)), name="rows", opset=8)
    weights = net.const(np.eye(3, 2, dtype=np.float32), name="weights")
    product = net.op("MatMul", rows, weights, name="product")
    net.result(net.op("SoftMax", product, name="probabilities", opset=8, axis=1))
    net.result(rows)
    return net


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return gather_net().write(tmp_path)
