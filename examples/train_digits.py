"""Trains a small convolutional digit classifier in NumPy and writes it as OpenVINO IR.

    python examples/train_digits.py [--epochs 40] [--output-dir examples/xml]

The data are scikit-learn's 8x8 digits (pixels 0 to 16), one third held out. The network:

    image [?,1,8,8] / 16 -> conv 3x3, 16 -> ReLU -> max pool 2
                         -> conv 3x3, 32 -> ReLU -> max pool 2 -> 128 -> 10 -> probabilities [?,10]

Written are digits.xml, digits.bin, digits_input.npz (the first held-out sample of each class) and
digits_expected.npz (their labels, and the probabilities that the forward pass below gives, as out0).
The seed is fixed and the files hold no dates: two runs on one machine write the same bytes. Another BLAS, or
another number of threads in it, adds in another order and ends in slightly other weights.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Array = NDArray[np.float32]
Weights = dict[str, Array]
PIXEL_SCALE = np.float32(1 / 16)


def conv(x: Array, weights: Array, bias: Array) -> tuple[Array, Array]:
    """Return a 3x3 convolution, stride 1, padding 1, and the im2col matrix [n,h,w,c*9], which the gradient needs."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(len(x), *x.shape[2:], -1)
    return (columns @ weights.reshape(len(weights), -1).T + bias).transpose(0, 3, 1, 2), columns


def conv_gradients(dy: Array, columns: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the gradients of x, weights and bias."""
    n, out_channels, h, w = dy.shape
    rows = dy.transpose(0, 2, 3, 1).reshape(-1, out_channels)
    dw = (rows.T @ columns.reshape(len(rows), -1)).reshape(weights.shape)
    dcolumns = (rows @ weights.reshape(out_channels, -1)).reshape(n, h, w, -1, 3, 3).transpose(0, 3, 4, 5, 1, 2)
    dpadded = np.zeros((n, weights.shape[1], h + 2, w + 2), np.float32)
    for i in range(3):
        for j in range(3):
            dpadded[:, :, i : i + h, j : j + w] += dcolumns[:, :, i, j]
    return dpadded[:, :, 1:-1, 1:-1], dw, rows.sum(axis=0)


def pool(x: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return 2x2 max pooling and the mask of the maxima (the first of equal ones) in [n,c,h,w,4] blocks."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return blocks.max(axis=-1), blocks.argmax(axis=-1)[..., None] == np.arange(4)


def pool_gradient(dy: Array, mask: NDArray[np.bool_]) -> Array:
    """Route the gradient to the maximum of each block."""
    n, c, h, w = dy.shape
    blocks = (dy[..., None] * mask).reshape(n, c, h, w, 2, 2)
    return blocks.transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def forward(weights: Weights, images: Array) -> tuple[Array, dict[str, Any]]:
    """Return the probabilities, and the intermediate results that `gradients` needs."""
    a1, columns1 = conv(images * PIXEL_SCALE, weights["conv1/weights"], weights["conv1/bias"])
    p1, mask1 = pool(np.maximum(a1, 0))
    a2, columns2 = conv(p1, weights["conv2/weights"], weights["conv2/bias"])
    p2, mask2 = pool(np.maximum(a2, 0))
    logits = p2.reshape(len(p2), -1) @ weights["fc/weights"] + weights["fc/bias"]
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    saved = {"a1": a1, "columns1": columns1, "mask1": mask1, "a2": a2, "columns2": columns2, "mask2": mask2}
    return exps / exps.sum(axis=1, keepdims=True), saved | {"p2": p2}


def gradients(weights: Weights, probabilities: Array, labels: NDArray[np.int64], saved: dict[str, Any]) -> Weights:
    """Return the gradients of the mean cross entropy for every weight."""
    dlogits = (probabilities - np.eye(10, dtype=np.float32)[labels]) / np.float32(len(labels))
    dp2 = (dlogits @ weights["fc/weights"].T).reshape(saved["p2"].shape)
    da2 = pool_gradient(dp2, saved["mask2"]) * (saved["a2"] > 0)
    dp1, dw2, db2 = conv_gradients(da2, saved["columns2"], weights["conv2/weights"])
    da1 = pool_gradient(dp1, saved["mask1"]) * (saved["a1"] > 0)
    _, dw1, db1 = conv_gradients(da1, saved["columns1"], weights["conv1/weights"])
    dfc = {"fc/weights": saved["p2"].reshape(len(labels), -1).T @ dlogits, "fc/bias": dlogits.sum(axis=0)}
    return {"conv1/weights": dw1, "conv1/bias": db1, "conv2/weights": dw2, "conv2/bias": db2} | dfc


def train(images: Array, labels: NDArray[np.int64], epochs: int, rng: np.random.Generator) -> Weights:
    """Train with Adam, batches of 32, and a learning rate that falls to zero along a cosine."""
    shapes = {"conv1/weights": (16, 1, 3, 3), "conv2/weights": (32, 16, 3, 3), "fc/weights": (128, 10)}
    fan_in = {"conv1/weights": 9, "conv2/weights": 144, "fc/weights": 128}
    weights: Weights = {n: rng.normal(0, (2 / fan_in[n]) ** 0.5, s).astype(np.float32) for n, s in shapes.items()}
    weights |= {n: np.zeros(size, np.float32) for n, size in (("conv1/bias", 16), ("conv2/bias", 32), ("fc/bias", 10))}
    mean = {n: np.zeros_like(w) for n, w in weights.items()}
    square = {n: np.zeros_like(w) for n, w in weights.items()}
    step, steps = 0, epochs * -(-len(images) // 32)
    for epoch in range(epochs):
        loss = 0.0
        order = rng.permutation(len(images))
        for batch in np.split(order, range(32, len(order), 32)):
            probabilities, saved = forward(weights, images[batch])
            loss -= float(np.log(probabilities[np.arange(len(batch)), labels[batch]] + 1e-12).sum())
            rate = 0.001 * (1 + np.cos(np.pi * step / steps))
            step += 1
            for n, g in gradients(weights, probabilities, labels[batch], saved).items():
                mean[n] += np.float32(0.1) * (g - mean[n])
                square[n] += np.float32(0.001) * (g * g - square[n])
                unbiased = mean[n] / (1 - 0.9**step), square[n] / (1 - 0.999**step)
                weights[n] -= (rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)).astype(np.float32)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}: loss {loss / len(images):.4f}")
    return weights


class Tensor(NamedTuple):
    """An output port of the graph being written; dims hold -1 for the batch."""

    dims: tuple[int, ...]
    precision: str = "FP32"
    layer: int = -1
    port: int = -1


class IrWriter:
    """Collects layers, edges and weights. Port ids count the inputs of a layer first, then its outputs."""

    def __init__(self) -> None:
        self.layers, self.edges, self.weights = "", "", bytearray()
        self.count = 0

    def add(self, kind: str, name: str, inputs: list[Tensor], outputs: list[Tensor], **data: object) -> Tensor:
        """Append a layer and return its first output. MaxPool and SoftMax are opset8's, all others opset1's."""
        layer, opset = self.count, 8 if kind in ("MaxPool", "SoftMax") else 1
        self.count += 1
        self.layers += f'    <layer id="{layer}" name="{name}" type="{kind}" version="opset{opset}">\n'
        if data:
            self.layers += "      <data" + "".join(f' {key}="{value}"' for key, value in data.items()) + " />\n"
        port = 0
        for side, tensors in (("input", inputs), ("output", outputs)):
            self.layers += f"      <{side}>\n" if tensors else ""
            for tensor in tensors:
                # Only inputs and outputs of the model have tensor names.
                names = f' names="{name}"' if side == "output" and name in ("image", "probabilities") else ""
                self.layers += f'        <port id="{port}" precision="{tensor.precision}"{names}>\n'
                self.layers += "".join(f"          <dim>{d}</dim>\n" for d in tensor.dims) + "        </port>\n"
                port += 1
            self.layers += f"      </{side}>\n" if tensors else ""
        self.layers += "    </layer>\n"
        for i, t in enumerate(inputs):
            source = f'from-layer="{t.layer}" from-port="{t.port}"'
            self.edges += f'    <edge {source} to-layer="{layer}" to-port="{i}" />\n'
        return outputs[0]._replace(layer=layer, port=len(inputs)) if outputs else Tensor(())

    def const(self, name: str, value: NDArray[Any]) -> Tensor:
        """Append a Const layer, and its value to the weights."""
        blob = value.astype(value.dtype.newbyteorder("<")).tobytes()
        element_type, precision = ("i64", "I64") if value.dtype == np.int64 else ("f32", "FP32")
        data = {"element_type": element_type, "shape": ",".join(map(str, value.shape))}
        data |= {"offset": str(len(self.weights)), "size": str(len(blob))}
        self.weights += blob
        return self.add("Const", name, [], [Tensor(value.shape, precision)], **data)


def export(weights: Weights, path: Path) -> None:
    """Write the network of `forward` as IR, version 11, with a dynamic batch."""
    ir = IrWriter()
    x = ir.add("Parameter", "image", [], [Tensor((-1, 1, 8, 8))], shape="?,1,8,8", element_type="f32")
    # The i64 pattern comes first, so that it lies at a multiple of 8; [0, -1] keeps the batch and joins the rest.
    pattern = ir.const("flatten/pattern", np.array([0, -1], np.int64))
    factor = ir.const("scale/factor", np.full((1, 1, 1, 1), PIXEL_SCALE))
    x = ir.add("Multiply", "scale", [x, factor], [Tensor(x.dims)], auto_broadcast="numpy")
    for i, channels, size in (1, 16, 8), (2, 32, 4):
        kernel = ir.const(f"conv{i}/weights", weights[f"conv{i}/weights"])
        bias = ir.const(f"conv{i}/bias", weights[f"conv{i}/bias"].reshape(1, channels, 1, 1))
        y = [Tensor((-1, channels, size, size))]
        data = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "auto_pad": "explicit"}
        x = ir.add("Convolution", f"conv{i}", [x, kernel], y, **data)
        x = ir.add("Add", f"conv{i}/add_bias", [x, bias], y, auto_broadcast="numpy")
        x = ir.add("ReLU", f"relu{i}", [x], y)
        half = (-1, channels, size // 2, size // 2)
        data |= {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2", "rounding_type": "floor"}
        data |= {"index_element_type": "i64", "axis": "0"}
        x = ir.add("MaxPool", f"pool{i}", [x], [Tensor(half), Tensor(half, "I64")], **data)
    x = ir.add("Reshape", "flatten", [x, pattern], [Tensor((-1, 128))], special_zero="true")
    y = [Tensor((-1, 10))]
    fc = ir.const("fc/weights", weights["fc/weights"])
    x = ir.add("MatMul", "fc", [x, fc], y, transpose_a="false", transpose_b="false")
    x = ir.add("Add", "fc/add_bias", [x, ir.const("fc/bias", weights["fc/bias"][None])], y, auto_broadcast="numpy")
    x = ir.add("SoftMax", "probabilities", [x], y, axis=1)
    ir.add("Result", "result", [x], [])
    body = f"  <layers>\n{ir.layers}  </layers>\n  <edges>\n{ir.edges}  </edges>\n"
    path.write_text(f'<?xml version="1.0"?>\n<net name="digits" version="11">\n{body}</net>\n', newline="\n")
    path.with_suffix(".bin").write_bytes(ir.weights)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a digit classifier in NumPy and write it as OpenVINO IR.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output-dir", type=Path, default=Path(__file__).parent / "xml")
    options = parser.parse_args()

    rng = np.random.default_rng(20240)
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    images = digits.images[order, None].astype(np.float32)
    labels = digits.target[order].astype(np.int64)
    split = len(order) * 2 // 3
    print(f"{split} training samples, {len(order) - split} held out")
    weights = train(images[:split], labels[:split], options.epochs, rng)

    images, labels = images[split:], labels[split:]
    right = forward(weights, images)[0].argmax(axis=1) == labels
    print(f"accuracy on the held-out samples: {right.mean():.2%} ({right.sum()} of {len(right)})")

    directory: Path = options.output_dir
    export(weights, directory / "digits.xml")
    chosen = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    np.savez(directory / "digits_input.npz", allow_pickle=False, image=images[chosen])
    expected = forward(weights, images[chosen])[0]
    np.savez(directory / "digits_expected.npz", allow_pickle=False, out0=expected, labels=labels[chosen])


if __name__ == "__main__":
    main()
