import numpy as np
import pytest
from support.builder import Net, output

import ovir

TEXTS = np.array([["hi", "żółw"], ["", "a b"]])


def test_unpack_and_pack_again() -> None:
    net = Net()
    parts = net.op("StringTensorUnpack", net.parameter("x", "2,?", "string"), opset=15, outputs=3)
    again = net.op("StringTensorPack", parts, output(parts, 1), output(parts, 2), opset=15)
    for source in (parts, output(parts, 1), output(parts, 2), again):
        net.result(source)
    compiled = net.compiled()
    assert [str(port.type) for port in compiled.outputs] == ["i32[2,?]", "i32[2,?]", "u8[?]", "string[2,?]"]
    begins, ends, symbols, strings = compiled([TEXTS]).values()
    assert begins.tolist() == [[0, 2], [9, 9]]
    assert ends.tolist() == [[2, 9], [9, 12]]
    assert symbols.tobytes().decode() == "hiżółwa b"
    assert strings.tolist() == TEXTS.tolist()


@pytest.mark.parametrize(
    ("begins", "ends", "message"),
    [([0, 5], [5, 9], r"string 1 has bytes \[5, 9\), outside the text of 8"), ([-1, 0], [0, 0], r"\[-1, 0\)"),
     ([3, 0], [1, 1], r"\[3, 1\)")],
)  # fmt: skip
def test_positions_outside_of_the_text(begins: list[int], ends: list[int], message: str) -> None:
    net = Net()
    packed = net.op(
        "StringTensorPack", *(net.parameter(n, "2", "i64") for n in "be"), net.parameter("s", "?", "u8"), opset=15
    )
    net.result(packed)
    with pytest.raises(ovir.RunError, match=message):
        net.compiled()([np.int64(begins), np.int64(ends), np.frombuffer(b"abcdefgh", np.uint8)])
