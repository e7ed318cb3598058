"""Recipes of operations that gather, scatter, sort, search and generate."""

from __future__ import annotations

import numpy as np

from ovir.fuzzing.making import INTEGERS, REALS, Make
from ovir.fuzzing.recipes import recipe


@recipe("Gather")
def gather(m: Make) -> None:
    shape = m.any_shape(1)
    axis = m.axis(len(shape))
    batch = m.rng.randint(0, axis % len(shape)) if m.opset > 1 else 0
    m.add(shape, m.anything)
    m.add((*shape[:batch], *m.any_shape(0, 2)), m.index)
    m.given(axis)
    if m.opset > 1:
        m.has(batch_dims=batch)


@recipe("GatherElements")
def gather_elements(m: Make) -> None:
    shape = list(m.any_shape(1))
    axis = m.axis(len(shape))
    m.add(shape, m.anything)
    shape[axis] = m.size()
    m.add(shape, m.index)
    m.has(axis=axis)


@recipe("GatherND")
def gather_nd(m: Make) -> None:
    shape = m.any_shape(1)
    batch = m.rng.randint(0, len(shape) - 1)
    width = m.rng.randint(1, len(shape) - batch)
    m.add(shape, m.anything)
    m.add((*shape[:batch], *m.any_shape(0, 2), width), m.index)
    m.has(batch_dims=batch)


@recipe("GatherTree")
def gather_tree(m: Make) -> None:
    for shape in ("T B W", "T B W", "B", ""):
        m.add(shape, m.type("tree", "i32", "f32"))


@recipe("ScatterElementsUpdate")
def scatter_elements(m: Make) -> None:
    shape = list(m.any_shape(1))
    axis = m.axis(len(shape))
    m.add(shape, m.number)
    part = [min(size, m.size()) for size in shape]
    m.add(part, m.index)
    m.add(part, m.number)
    m.given(axis)


@recipe("ScatterUpdate")
def scatter(m: Make) -> None:
    shape = m.any_shape(1)
    axis = m.axis(len(shape)) % len(shape)
    places = m.any_shape(0, 2)
    m.add(shape, m.anything)
    m.add(places, m.index)
    m.add((*shape[:axis], *places, *shape[axis + 1 :]), m.anything)
    m.given(axis)


@recipe("ScatterNDUpdate")
def scatter_nd(m: Make) -> None:
    shape = m.any_shape(1)
    width, places = m.rng.randint(1, len(shape)), m.any_shape(0, 2)
    m.add(shape, m.anything)
    m.add((*places, width), m.index)
    m.add((*places, *shape[width:]), m.anything)


@recipe("OneHot")
def one_hot(m: Make) -> None:
    shape = m.any_shape(0, 3)
    m.add(shape, m.index)
    m.given(m.rng.randint(1, 6))
    m.add((), m.anything)
    m.add((), m.anything)
    m.has(axis=m.axis(len(shape) + 1))


@recipe("TopK")
def top_k(m: Make) -> None:
    shape = m.any_shape(1)
    axis = m.axis(len(shape))
    m.add(shape, m.number)
    m.given(m.rng.randint(0, shape[axis]))
    m.has(axis=axis)


@recipe("Unique")
def unique(m: Make) -> None:
    shape = m.any_shape(1)
    m.add(shape, m.number)
    if m.flag():
        m.given(m.axis(len(shape)))


@recipe("Bucketize")
def bucketize(m: Make) -> None:
    m.add("... A", m.number)
    m.add("K", m.number)


@recipe("SearchSorted")
def search_sorted(m: Make) -> None:
    m.add("... K", m.number)
    m.add("... V", m.number)


@recipe("SegmentMax")
def segment_max(m: Make) -> None:
    m.add("S ...", m.number)
    m.add("S", m.index)
    if m.flag():
        m.given(m.rng.randint(0, 12))


@recipe("SparseFillEmptyRows")
def sparse(m: Make) -> None:
    rows, columns, count = m.pick(1, 3, 8), m.pick(1, 4), m.size()
    places = sorted([m.rng.randrange(rows), m.rng.randrange(columns)] for _ in range(count))
    m.add((count,), m.number)
    m.given([rows, columns])
    m.given(np.array(places, np.int64).reshape(count, 2))
    m.add((), m.number)


@recipe("EmbeddingBagOffsets", "EmbeddingBagOffsetsSum")
def embedding_offsets(m: Make) -> None:
    m.set(E=m.pick(1, 3, 7))
    reduction = m.pick("sum", "sum", "mean")
    m.add("E ...", m.narrow_real)
    m.add("I", m.index)
    m.add("B", m.index)
    if m.flag():
        m.given(m.pick(-1, 0))
        if m.flag() and reduction == "sum":
            m.add("I", m.narrow_real)
    if m.opset == 15:
        m.has(reduction=reduction)


@recipe("EmbeddingBagPacked", "EmbeddingBagPackedSum")
def embedding_packed(m: Make) -> None:
    m.set(E=m.pick(1, 3, 7))
    m.add("E ...", m.narrow_real)
    m.add("B I", m.index)
    if m.flag():
        m.add("B I", m.narrow_real)
    elif m.opset == 15:
        m.has(reduction=m.pick("sum", "mean"))


@recipe("EmbeddingSegmentsSum")
def embedding_segments(m: Make) -> None:
    m.set(E=m.pick(1, 3, 7))
    m.add("E ...", m.narrow_real)
    m.add("I", m.index)
    m.add("I", m.index)
    m.given(m.pick(2, 5))
    if m.flag():
        m.given(m.pick(-1, 0))
        if m.flag():
            m.add("I", m.narrow_real)


# --------------------------------------------------------------------------- generation


@recipe("Range")
def range_(m: Make) -> None:
    kind = m.type("range", "i32", "i64", "f32", "u8")
    start, step = m.rng.randint(0, 9), m.pick(1, 2, 3)
    values = [start, start + m.rng.randint(0, 9), step]
    if kind != "u8" and m.flag():
        values = [values[1], values[0], -step]
    for value in values:
        m.given(value, kind)
    if m.opset == 4:
        m.has(output_type=m.pick("i32", "i64", "f32", "f16"))


@recipe("Eye")
def eye(m: Make) -> None:
    for low in (0, 0, -4):
        m.given(m.rng.randint(low, 7))
    if m.flag():
        m.given(m.ints(m.rng.randint(0, 2), 0, 3))
    m.has(output_type=m.pick("f32", "i32", "i64", "u8", "f16", "boolean"))


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


@recipe("StringTensorUnpack")
def unpack(m: Make) -> None:
    m.add("... A", "string")


# --------------------------------------------------------------------------- products


@recipe("MatMul")
def matmul(m: Make) -> None:
    a, b = m.flag(), m.flag()
    kind = m.type("product", *REALS, *INTEGERS)
    m.add("... K M" if a else "... M K", kind)
    m.add(("N K" if b else "K N") if m.chance(0.4) else "... N K" if b else "... K N", kind)
    m.has(transpose_a=a, transpose_b=b)


@recipe("GroupedMatMul")
def grouped(m: Make) -> None:
    m.set(G=m.pick(1, 2, 3))
    if m.flag():
        m.add("G M K", m.narrow_real)
        m.add("G N K", m.narrow_real)
    else:
        m.add("T K", m.narrow_real)
        m.add("G N K", m.narrow_real)
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


@recipe("Inverse")
def inverse(m: Make) -> None:
    m.add("... K K", m.narrow_real)


@recipe("ScaledDotProductAttention")
def attention(m: Make) -> None:
    m.set(E=m.pick(1, 4, 8))
    for shape in ("N ... L E", "N ... S E", "N ... S V"):
        m.add(shape, m.narrow_real)
    causal = m.flag()
    if m.flag() or causal:
        m.add("L S", m.narrow_real if m.flag() else "boolean")
        if m.flag():
            m.add((), m.narrow_real)
    m.has(causal=causal)


@recipe("DFT", "IDFT", "RDFT", "IRDFT")
def fourier(m: Make) -> None:
    rank = m.rng.randint(1, 3)
    shape = [m.pick(1, 2, 3, 5, 8) for _ in range(rank)]
    signal = shape if m.kind == "RDFT" else [*shape, 2]
    m.add(signal, m.narrow_real)
    axes = m.rng.sample(range(rank), m.rng.randint(1, rank))
    m.given(axes)
    if m.flag():
        m.given([m.pick(1, 2, 4, 7, -1) for _ in axes])


@recipe("STFT")
def stft(m: Make) -> None:
    frame = m.pick(1, 4, 8)
    m.add((*m.pick((), (1,), (2,)), frame + m.rng.randint(0, 20)), m.narrow_real)
    m.add((m.rng.randint(1, frame),), m.narrow_real)
    m.given(frame)
    m.given(m.pick(1, 2, 3))


@recipe("ISTFT")
def istft(m: Make) -> None:
    frame = m.pick(2, 4, 8)
    m.add((*m.pick((), (2,)), frame // 2 + 1, m.pick(1, 3, 5), 2), m.narrow_real)
    m.add((m.rng.randint(1, frame),), m.narrow_real)
    m.given(frame)
    m.given(m.pick(1, 2))
    if m.flag():
        m.given(m.pick(1, 9, 30))


@recipe("CTCGreedyDecoder")
def ctc_greedy(m: Make) -> None:
    m.set(C=m.pick(1, 2, 5))
    m.add("T N C", m.narrow_real)
    m.add("T N", m.narrow_real)


@recipe("CTCGreedyDecoderSeqLen")
def ctc_lengths(m: Make) -> None:
    m.set(C=m.pick(1, 2, 5))
    m.add("N T C", m.narrow_real)
    m.add("N", m.index)
    if m.flag():
        m.given(0)


@recipe("CTCLoss")
def ctc_loss(m: Make) -> None:
    m.set(C=m.pick(2, 3, 5), T=m.pick(1, 3, 6))
    for shape, kind in (("N T C", m.narrow_real), ("N", m.index), ("N T", m.index), ("N", m.index)):
        m.add(shape, kind)
    if m.flag():
        m.given(0)
