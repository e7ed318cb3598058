"""How much memory a run takes, as ``ovir show --memory`` says."""

import tracemalloc

import numpy as np
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.runtime.memory import memory_use


def chain_net() -> Net:
    """Layers of 400 kB each, of which few are needed at one time, and weights of 40 kB."""
    net = Net()
    x = net.parameter("x", "1000,100")
    x = net.op("MatMul", x, net.const(np.ones((100, 100), np.float32)))
    for _ in range(6):
        x = net.op("Softplus", net.op("Transpose", x, net.const([1, 0], "i64")), opset=4)
    net.result(x)
    return net


def test_the_memory_of_a_run_is_what_it_takes() -> None:
    compiled = chain_net().compiled()
    use = memory_use(compiled.plan())
    assert 40_000 <= use.weights < 41_000  # the orders of Transpose are constants, too
    assert use.inputs == 400_000
    assert use.unknown == 0
    data = {"x": np.ones((1000, 100), np.float32)}
    chain_net().compiled()(data)  # which imports what a run needs
    tracemalloc.start()
    try:
        compiled(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert use.activations >= 800_000  # the input of a layer and its output
    result = 400_000  # of which the caller gets a copy
    assert use.activations <= peak <= use.inputs + 2 * use.activations + result  # binding has memory of its own


def test_weights_that_stay_compressed_count_as_in_the_file() -> None:
    x = ops.parameter([1, 1024], "f32")
    codes = ops.constant(np.ones((2048, 1024)), "i8")
    weights = ops.multiply(ops.convert(codes, "f16"), np.full((2048, 1), 0.5, np.float16))
    model = ovir.Model([ops.matmul(x, ops.convert(weights, "f32"), False, True)], [x])
    assert memory_use(ovir.compile_model(model, keep_compressed=True).plan()).weights == 2048 * 1024 + 2 * 2048
