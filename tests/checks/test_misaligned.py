"""Constants that are not aligned are reported only if copying them costs something."""

import numpy as np
import pytest
from support.builder import Net

import ovir


@pytest.mark.parametrize(
    ("offset", "mebibytes", "is_reported"), [(0, 20, False), (2, 1, False), (2, 20, True), (4, 20, False)]
)
def test_only_large_copies_are_reported(offset: int, mebibytes: int, is_reported: bool) -> None:
    net = Net()
    net.blob += bytes(offset)
    elements = mebibytes << 18
    weights = net.const(np.tile(np.float32([1, 2, 3, 5]), elements // 4))
    net.result(net.op("Add", net.parameter("x", "1"), weights, auto_broadcast="numpy"))
    found = [d for d in ovir.check(net.xml(), bytes(net.blob)) if d.code == "OVIR509"]
    assert [d.message for d in found] == (
        ["offset 2 is not a multiple of 4, the size of f32; ovir copies 21.0 MB that it would map otherwise"]
        if is_reported
        else []
    )


def test_small_constants_add_up() -> None:
    net = Net()
    net.blob += b"\0"
    tensor = net.parameter("x", "1")
    for number in range(5):
        weights = net.const(np.tile(np.float32([1, 2, 3, 5 + number]), 1 << 18))
        tensor = net.op("Add", tensor, weights, auto_broadcast="numpy")
    net.result(tensor)
    (found,) = [d for d in ovir.check(net.xml(), bytes(net.blob)) if d.code == "OVIR509"]
    assert found.message.endswith("; the same applies to 4 more constants")
