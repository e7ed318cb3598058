"""Recipes of operations that gather, scatter, sort, search and generate."""

from __future__ import annotations

import numpy as np

from ovir.fuzzing.making import REALS, Make
from ovir.fuzzing.recipes import recipe


@recipe("Gather")
def gather(m: Make) -> None:
    shape = m.data("anything", 1)
    axis = m.axis(len(shape))
    batch = m.rng.randint(0, axis % len(shape)) if m.opset > 1 else 0
    m.add((*shape[:batch], *m.any_shape(0, 2)), m.index)
    m.given(axis)
    if m.opset > 1:
        m.has(batch_dims=batch)


@recipe("GatherElements")
def gather_elements(m: Make) -> None:
    shape = list(m.data("anything", 1))
    axis = m.axis(len(shape))
    shape[axis] = m.size()
    m.add(shape, m.index)
    m.has(axis=axis)


@recipe("GatherND")
def gather_nd(m: Make) -> None:
    shape = m.data("anything", 1)
    batch = m.rng.randint(0, len(shape) - 1)
    width = m.rng.randint(1, len(shape) - batch)
    m.add((*shape[:batch], *m.any_shape(0, 2), width), m.index)
    m.has(batch_dims=batch)


@recipe("ScatterElementsUpdate")
def scatter_elements(m: Make) -> None:
    shape = list(m.data("number", 1))
    axis = m.axis(len(shape))
    part = [min(size, m.size()) for size in shape]
    m.add(part, m.index)
    m.add(part, m.number)
    m.given(axis)


@recipe("ScatterUpdate")
def scatter(m: Make) -> None:
    shape = m.data("anything", 1)
    axis = m.axis(len(shape)) % len(shape)
    places = m.any_shape(0, 2)
    m.add(places, m.index)
    m.add((*shape[:axis], *places, *shape[axis + 1 :]), m.anything)
    m.given(axis)


@recipe("ScatterNDUpdate")
def scatter_nd(m: Make) -> None:
    shape = m.data("anything", 1)
    width, places = m.rng.randint(1, len(shape)), m.any_shape(0, 2)
    m.add((*places, width), m.index)
    m.add((*places, *shape[width:]), m.anything)


@recipe("SparseFillEmptyRows")
def sparse(m: Make) -> None:
    rows, columns, count = m.pick(1, 3, 8), m.pick(1, 4), m.size()
    places = sorted([m.rng.randrange(rows), m.rng.randrange(columns)] for _ in range(count))
    m.add((count,), m.number)
    m.given([rows, columns])
    m.given(np.array(places, np.int64).reshape(count, 2))
    m.add((), m.number)


# --------------------------------------------------------------------------- generation


@recipe("RangeBase")
def numbers(m: Make) -> None:
    kind, sign = m.number, m.pick(1, -1)
    for value in (m.rng.randint(0, 9), m.rng.randint(0, 18), sign * m.rng.randint(1, 3)):
        m.given(value, kind)
    m.has(output_type=m.pick("i32", "i64", "f32", "f16"))


@recipe("RandomUniform")
def random_uniform(m: Make) -> None:
    kind = m.type("random", "f32", "f16", "bf16", "f64", "i32", "i64")
    m.given(m.any_shape())
    low = m.rng.randint(0, 5)
    m.given(low, kind)
    m.given(low + m.rng.randint(1, 9), kind)
    m.has(output_type=kind, global_seed=m.pick(0, 1, 150), op_seed=m.pick(1, 10, 2**31))


@recipe("Multinomial")
def multinomial(m: Make) -> None:
    shape = m.shape("B C")
    m.add((), m.real, np.array([m.rng.random() + 0.1 for _ in range(shape[0] * shape[1])], np.float32).reshape(shape))
    m.given(m.rng.randint(0, 3), "i32")
    m.has(global_seed=3, op_seed=4)


@recipe("Const")
def const(m: Make) -> None:
    m.add("... A", m.anything, constant=True)


@recipe("StringTensorPack")
def pack(m: Make) -> None:
    count = m.size()
    ends = np.sort(m.ints(count, 0, 8)).astype(np.int64)
    m.add((), "i32", np.concatenate([[0], ends])[:count].astype(np.int32))
    m.add((), "i32", ends.astype(np.int32))
    m.add((), "u8", np.full(8, 97, np.uint8))


# --------------------------------------------------------------------------- products


@recipe("MatMul")
def matmul(m: Make) -> None:
    a, b = m.flag(), m.flag()
    first, second = "K M" if a else "M K", "N K" if b else "K N"
    m.take(f"number ... {first}, number {second} | ... {second}")
    m.has(transpose_a=a, transpose_b=b)


@recipe("GroupedMatMul")
def grouped(m: Make) -> None:
    m.set(G=m.pick(1, 2, 3))
    is_dense = m.flag()
    m.take(f"narrow {'G M K' if is_dense else 'T K'}, narrow G N K")
    if not is_dense:
        total, groups = m.shape("T G")
        m.add((), "i32", np.sort(np.array([*m.ints(groups - 1, 0, total), total], np.int32)))


@recipe("Einsum")
def einsum(m: Make) -> None:
    equation = m.pick(
        "ij,jk->ik",
        "ij->ji",
        "i,i->",
        "bij,bjk->bik",
        "ii->i",
        "i,j->ij",
        "abc,cd,de->abe",
        "ij",
        "...i,i...->...",
        "ab,cd->",
    )
    for subscript in equation.split("->")[0].split(","):
        m.add(" ".join(subscript.replace("...", "")), m.type("product", *REALS, "i32", "i64"))
    m.has(equation=equation)


@recipe("DFT", "IDFT", "RDFT", "IRDFT")
def fourier(m: Make) -> None:
    rank = m.rng.randint(1, 3)
    shape = [m.pick(1, 2, 3, 5, 8) for _ in range(rank)]
    signal = shape if m.kind == "RDFT" else [*shape, 2]
    m.add(signal, m.narrow)
    axes = m.rng.sample(range(rank), m.rng.randint(1, rank))
    m.given(axes)
    if m.flag():
        m.given([m.pick(1, 2, 4, 7, -1) for _ in axes])
