"""Builds a small stateful decoder with OpenVINO and generates with it, apart from the tests.

usage: decoder_worker.py FOLDER WEIGHTS    WEIGHTS: f32, i8 or u4, how those of the products are stored;
model.xml, model.bin and expected.npz (the tokens that follow the prompt, and their logits) are written.
"""

import sys
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from openvino.op import util

VOCABULARY, WIDTH, HEADS, LENGTH, INNER, LAYERS, GROUP = 96, 64, 4, 16, 128, 2, 32
PROMPT = [[5, 17, 42, 8]]
STEPS = 20


class Decoder:
    """Two layers as Llama has them: RMSNorm, RoPE, attention with a cache, a gated product; the head is tied."""

    def __init__(self, weights: str) -> None:
        self.weights = weights
        self.random = np.random.default_rng(11)
        self.assigns: list[ov.Node] = []
        self.shared: list[np.ndarray] = []  # memory that constants read from, and do not keep alive

    def model(self) -> ov.Model:
        ids = ops.parameter([-1, -1], ov.Type.i64, name="input_ids")
        positions = ops.parameter([-1, -1], ov.Type.i64, name="position_ids")
        beams = ops.parameter([-1], ov.Type.i32, name="beam_idx")
        for parameter in (ids, positions, beams):
            parameter.output(0).set_names({parameter.get_friendly_name()})
        table = self.matrix(VOCABULARY, WIDTH)
        h = ops.gather(table, ids, np.int64(0))
        cos_sin = self.rotation(positions)
        mask = self.causal_mask(positions)
        for number in range(LAYERS):
            h = ops.add(h, self.attention(self.norm(h), cos_sin, beams, mask, number))
            x = self.norm(h)
            gated = ops.multiply(ops.swish(self.product(x, INNER)), self.product(x, INNER))
            h = ops.add(h, self.product(gated, WIDTH))
        logits = ops.result(ops.matmul(self.norm(h), table, False, True), name="logits")
        logits.output(0).set_names({"logits"})
        return ov.Model([logits], self.assigns, [ids, positions, beams], "decoder")

    def matrix(self, rows: int, columns: int) -> ov.Node:
        """Random weights; compressed ones with the arithmetic that decompresses them."""
        values = (self.random.standard_normal((rows, columns)) * 2 / np.sqrt(columns)).astype(np.float32)
        if self.weights == "f32":
            return ops.constant(values)
        if self.weights == "i8":
            scale = np.abs(values).max(1, keepdims=True) / 127
            codes = ops.constant(np.rint(values / scale).astype(np.int8))
            decompressed = ops.multiply(ops.convert(codes, "f16"), ops.constant(scale.astype(np.float16)))
            return ops.convert(decompressed, "f32")
        groups = values.reshape(rows, -1, GROUP)
        scale = ((groups.max(2, keepdims=True) - groups.min(2, keepdims=True)) / 15).astype(np.float16)
        zero_point = np.clip(np.rint(-groups.min(2, keepdims=True) / scale), 0, 15)
        codes = np.clip(np.rint(groups / scale.astype(np.float32) + zero_point), 0, 15)
        shifted = ops.subtract(*(ops.convert(self.u4(part), "f16") for part in (codes, zero_point)))
        decompressed = ops.reshape(ops.multiply(shifted, ops.constant(scale)), np.int64([rows, columns]), False)
        return ops.convert(decompressed, "f32")

    def u4(self, codes: np.ndarray) -> ov.Node:
        flat = codes.astype(np.uint8).reshape(-1)
        self.shared.append(flat[0::2] | flat[1::2] << 4)
        return ops.constant(ov.Tensor(self.shared[-1], ov.Shape(codes.shape), ov.Type.u4))

    def product(self, x: ov.Node, rows: int) -> ov.Node:
        columns = INNER if rows == WIDTH and x.get_output_partial_shape(0)[-1] == INNER else WIDTH
        return ops.matmul(x, self.matrix(rows, columns), False, True)

    def norm(self, x: ov.Node) -> ov.Node:
        mean = ops.reduce_mean(ops.power(x, np.float32(2)), np.int64([-1]), True)
        scaled = ops.multiply(x, ops.divide(np.float32(1), ops.sqrt(ops.add(mean, np.float32(1e-5)))))
        gains = self.random.uniform(0.5, 1.5, WIDTH).astype(np.float32)
        return ops.multiply(ops.constant(gains), scaled)

    @staticmethod
    def rotation(positions: ov.Node) -> tuple[ov.Node, ov.Node]:
        frequencies = (10000.0 ** (-np.arange(0, LENGTH, 2) / LENGTH)).astype(np.float32)
        angles = ops.multiply(ops.unsqueeze(ops.convert(positions, "f32"), np.int64(2)), ops.constant(frequencies))
        angles = ops.unsqueeze(ops.concat([angles, angles], 2), np.int64(1))
        return ops.cos(angles), ops.sin(angles)

    @staticmethod
    def rotated(x: ov.Node, cos_sin: tuple[ov.Node, ov.Node]) -> ov.Node:
        half = [np.int64([n]) for n in (0, LENGTH // 2, LENGTH, 1, 3)]
        first, second = (ops.slice(x, half[i], half[i + 1], half[3], half[4]) for i in (0, 1))
        turned = ops.concat([ops.multiply(second, np.float32(-1)), first], 3)
        return ops.add(ops.multiply(x, cos_sin[0]), ops.multiply(turned, cos_sin[1]))

    @staticmethod
    def causal_mask(positions: ov.Node) -> ov.Node:
        """Position i sees positions up to i; keys stand in the order of their positions."""
        last = ops.reduce_max(positions, np.int64([0, 1]), False)
        keys = ops.range(np.int64(0), ops.add(last, np.int64(1)), np.int64(1), "i64")
        return ops.unsqueeze(ops.less_equal(keys, ops.unsqueeze(positions, np.int64(2))), np.int64(1))

    def attention(
        self, x: ov.Node, cos_sin: tuple[ov.Node, ov.Node], beams: ov.Node, mask: ov.Node, number: int
    ) -> ov.Node:
        def heads(part: ov.Node) -> ov.Node:
            return ops.transpose(ops.reshape(part, np.int64([0, 0, HEADS, LENGTH]), True), np.int64([0, 2, 1, 3]))

        query, key, value = (heads(self.product(x, WIDTH)) for _ in range(3))
        key = self.cached(self.rotated(key, cos_sin), beams, f"past.{number}.key")
        value = self.cached(value, beams, f"past.{number}.value")
        attended = ops.scaled_dot_product_attention(self.rotated(query, cos_sin), key, value, mask)
        joined = ops.reshape(ops.transpose(attended, np.int64([0, 2, 1, 3])), np.int64([0, 0, WIDTH]), True)
        return self.product(joined, WIDTH)

    def cached(self, new: ov.Node, beams: ov.Node, name: str) -> ov.Node:
        shape = ov.PartialShape([-1, HEADS, -1, LENGTH])
        info = util.VariableInfo()
        info.data_shape, info.data_type, info.variable_id = shape, ov.Type.f32, name
        variable = util.Variable(info)
        batch = ops.gather(ops.shape_of(beams), np.int64([0]), np.int64(0))
        empty = ops.concat([batch, *(ops.constant(np.int64([n])) for n in (HEADS, 0, LENGTH))], 0)
        start = ops.broadcast(np.float32(0), empty)
        past = ops.gather(ops.read_value(start, variable), beams, np.int64(0))
        joined = ops.concat([past, new], 2)
        self.assigns.append(ops.assign(joined, variable))
        return joined


def feeds(tokens: list[list[int]], past: int) -> dict[str, np.ndarray]:
    ids = np.array(tokens, np.int64)
    positions = np.broadcast_to(np.arange(past, past + ids.shape[1]), ids.shape).astype(np.int64)
    return {"input_ids": ids, "position_ids": positions, "beam_idx": np.arange(len(ids), dtype=np.int32)}


def main(folder: Path, weights: str) -> None:
    core = ov.Core()
    decoder = Decoder(weights)
    ov.save_model(decoder.model(), folder / "model.xml", compress_to_fp16=False)
    settings = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}
    request = core.compile_model(core.read_model(folder / "model.xml"), "CPU", settings).create_infer_request()
    tokens, logits, past, given = [], [], 0, PROMPT
    for _ in range(STEPS):
        result = request.infer(feeds(given, past))[0]
        past += len(given[0])
        logits.append(result[0, -1].copy())
        tokens.append(int(logits[-1].argmax()))
        given = [[tokens[-1]]]
    np.savez(folder / "expected.npz", tokens=tokens, logits=logits)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
