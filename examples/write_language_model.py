"""Write the folder of a small language model: a decoder, a tokenizer and a detokenizer.

The decoder has the form of Qwen2 and of what optimum-intel writes: tokens, a mask, positions and beams go in, logits
come out, and variables keep the keys and values of earlier tokens. Its weights are random, so its texts mean nothing.
Each printable ASCII character is a token, so that the tokenizer needs no operations but those of opset15.

    python examples/write_language_model.py FOLDER [--seed N]
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from ovir import opset15 as ops
from ovir.core.arrays import Array

Layer = Any
FIRST, LAST = 32, 126
"""The characters that are tokens: space to tilde."""
END = LAST - FIRST + 1
"""The token that ends a text."""
WIDTH, HEADS, GROUPS, LAYERS = 32, 4, 2, 2
SIZE = WIDTH // HEADS
CONTEXT = 256


def parameter(name: str, shape: list[int], element_type: str) -> Layer:
    return ops.parameter(shape, element_type, name=name, tensor_names={name})


def named(layer: Layer, name: str) -> Layer:
    layer.outputs[0].names = {name}
    return layer


# --------------------------------------------------------------------------- the tokenizer


def tokenizer() -> ovir.Model:
    """Return the model from one text to its tokens, [1, length]."""
    text = parameter("string_input", [1], "string")
    characters = ops.convert(ops.string_tensor_unpack(text).outputs[2], "i64")
    known = ops.minimum(ops.maximum(characters, np.int64(FIRST)), np.int64(LAST))
    ids = ops.unsqueeze(ops.subtract(known, np.int64(FIRST)), np.array([0]))
    mask = ops.broadcast(np.int64(1), ops.shape_of(ids))
    return ovir.Model([named(ids, "input_ids"), named(mask, "attention_mask")], [text], "tokenizer")


def detokenizer() -> ovir.Model:
    """Return the model from tokens, [1, length], to their text."""
    ids = parameter("input_ids", [1, -1], "i64")
    characters = ops.convert(ops.reshape(ops.add(ids, np.int64(FIRST)), [-1], False), "u8")
    length = ops.shape_of(characters, "i32")
    text = ops.string_tensor_pack(np.array([0], np.int32), length, characters)
    return ovir.Model([named(text, "string_output")], [ids], "detokenizer")


# --------------------------------------------------------------------------- the decoder


def decoder(vocabulary: int, seed: int = 0) -> ovir.Model:
    """Return a decoder with random weights and a state."""
    random = np.random.default_rng(seed)

    def weights(outputs: int, inputs: int) -> Array:
        return random.standard_normal((outputs, inputs), np.float32) * np.float32(inputs**-0.5)

    def heads(x: Layer, count: int) -> Layer:
        """Return the product of x with weights as [batch, count, length, SIZE]."""
        product = ops.matmul(x, weights(count * SIZE, WIDTH), False, True)
        return ops.transpose(ops.reshape(product, [0, -1, count, SIZE], True), [0, 2, 1, 3])

    ids = parameter("input_ids", [-1, -1], "i64")
    mask = parameter("attention_mask", [-1, -1], "i64")
    positions = parameter("position_ids", [-1, -1], "i64")
    beams = parameter("beam_idx", [-1], "i32")
    batch = ops.gather(ops.shape_of(ids), np.array([0]), np.array(0))
    past_shape = ops.concat([batch, np.array([GROUPS]), np.array([0]), np.array([SIZE])], 0)
    nothing = ops.broadcast(np.float32(0), past_shape)
    turns, seen = rotations(positions), visible(mask, ids)
    sinks = []

    def remembered(new: Layer, name: str) -> Layer:
        """Return all keys or values until now, repeated for the queries that share them."""
        past = ops.gather(ops.read_value(nothing, name, "f32", [-1, GROUPS, -1, SIZE]), beams, np.array(0))
        both = ops.concat([past, new], 2)
        sinks.append(ops.assign(both, name))
        shape = np.array([1, 1, HEADS // GROUPS, 1, 1])
        repeated = ops.broadcast(ops.unsqueeze(both, np.array([2])), shape, None, "bidirectional")
        return ops.reshape(repeated, [0, HEADS, -1, SIZE], True)

    words = weights(vocabulary, WIDTH) * np.float32(WIDTH**0.5)
    x: Layer = ops.gather(words, ids, np.array(0))
    for index in range(LAYERS):
        y = normalized(x)
        q, k, v = turned(heads(y, HEADS), turns), turned(heads(y, GROUPS), turns), heads(y, GROUPS)
        keys = remembered(k, f"past_key_values.{index}.key")
        values = remembered(v, f"past_key_values.{index}.value")
        mixed = ops.transpose(ops.scaled_dot_product_attention(q, keys, values, seen), [0, 2, 1, 3])
        x = ops.add(x, ops.matmul(ops.reshape(mixed, [0, 0, WIDTH], True), weights(WIDTH, WIDTH), False, True))
        wide = ops.swish(ops.matmul(normalized(x), weights(4 * WIDTH, WIDTH), False, True))
        x = ops.add(x, ops.matmul(wide, weights(WIDTH, 4 * WIDTH), False, True))
    logits = named(ops.matmul(normalized(x), weights(vocabulary, WIDTH), False, True), "logits")
    return ovir.Model([logits], [ids, mask, positions, beams], "decoder", sinks=sinks)


def normalized(x: Layer) -> Layer:
    """Return vectors of length 1, times the root of their size."""
    mean = ops.reduce_mean(ops.multiply(x, x), np.array([-1]), True)
    return ops.divide(x, ops.sqrt(ops.add(mean, np.float32(1e-6))))


def rotations(positions: Layer) -> tuple[Layer, Layer]:
    """Return the cosines and sines that turn the pairs of a head at each position, [batch, 1, length, SIZE]."""
    rates = (1e4 ** -(np.arange(0, SIZE, 2) / SIZE)).astype(np.float32)
    angles = ops.multiply(ops.unsqueeze(ops.convert(positions, "f32"), np.array([1, 3])), rates)
    both = ops.concat([angles, angles], -1)
    return ops.cos(both), ops.sin(both)


def turned(x: Layer, turns: tuple[Layer, Layer]) -> Layer:
    first, second = ops.split(x, np.array(3), 2).outputs
    crossed = ops.concat([ops.multiply(second, np.float32(-1)), first], -1)
    return ops.add(ops.multiply(x, turns[0]), ops.multiply(crossed, turns[1]))


def visible(mask: Layer, ids: Layer) -> Layer:
    """Return 0 where a token may look and -65504 elsewhere, [batch, 1, new tokens, all tokens]."""
    zero, one = np.array(0), np.array(1)
    whole, new = (ops.gather(ops.shape_of(x), one, zero) for x in (mask, ids))
    columns = ops.range(zero, whole, one, "i64")
    rows = ops.unsqueeze(ops.range(ops.subtract(whole, new), whole, one, "i64"), np.array([1]))
    is_past = ops.unsqueeze(ops.less_equal(columns, rows), np.array([0, 1]))
    is_token = ops.unsqueeze(ops.convert(mask, "boolean"), np.array([1, 2]))
    return ops.select(ops.logical_and(is_past, is_token), np.float32(0), np.float32(-65504))


def write(folder: Path, seed: int = 0) -> None:
    """Write the three models and the settings."""
    folder.mkdir(parents=True, exist_ok=True)
    ovir.save_model(decoder(END + 1, seed), folder / "openvino_model.xml")
    ovir.save_model(tokenizer(), folder / "openvino_tokenizer.xml")
    ovir.save_model(detokenizer(), folder / "openvino_detokenizer.xml")
    settings = {"config": {"max_position_embeddings": CONTEXT}, "generation_config": {"eos_token_id": END}}
    for name, entries in settings.items():
        (folder / f"{name}.json").write_text(json.dumps(entries), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write(arguments.folder, arguments.seed)


if __name__ == "__main__":
    main()
