"""Constants without elements."""

import pytest
from support.builder import Net

import ovir


@pytest.mark.parametrize(("size", "codes"), [(0, []), (1, []), (2, ["OVIR504"])])
def test_one_byte_is_not_too_much(size: int, codes: list[str]) -> None:
    net = Net()
    net.blob += bytes(size)
    net.result(net.op("Const", element_type="u8", shape="0", offset="0", size=str(size)))
    found = ovir.check(net.xml().encode(), bytes(net.blob))
    assert [d.code for d in found if d.code == "OVIR504"] == codes
