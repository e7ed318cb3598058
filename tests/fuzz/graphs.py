"""Run random graphs with ovir and with OpenVINO's CPU plugin, and compare the results.

    python -m tests.fuzz.graphs --count 3000 --seed 0 [--keep FOLDER]

Each graph has 3 to 12 layers. What differs is put down to a known divergence (``KNOWN``, by what the graph contains; each
is a row of docs/divergences.md) or printed. The exit status is 1 if a difference has no known reason.

Results are compared within their sensitivity: the model is run again with a rounding error in each tensor, and where its
results then change, those of OpenVINO may differ as much.
"""

from __future__ import annotations

import argparse
import re
import select
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `builder`

import numpy as np

import ovir
from fuzz.graph_recipes import FLOATS, RECIPES, Graph, Tensor, Unfit
from fuzz.known_divergences import reason_of_message, reason_of_value

MOST_ELEMENTS = 5000
SECONDS = 20
ROUNDING = {"f32": 2.0**-21, "f16": 2.0**-10}
"""The relative error of a tensor, that of sums included."""
NOISY_RUNS = 10
SUMS = frozenset(
    [
        "Add",
        "Subtract",
        "FakeQuantize",
        "MatMul",
        "Convolution",
        "GroupConvolution",
        "ConvolutionBackpropData",
        "ReduceSum",
        "ReduceMean",
        "CumSum",
        "AvgPool",
        "AdaptiveAvgPool",
        "Interpolate",
        "MVN",
        "BatchNormInference",
        "GroupNormalization",
        "Mod",
        "FloorMod",
        "SquaredDifference",
    ]
)
"""Operations whose rounding errors depend on the size of their inputs."""


@dataclass(frozen=True)
class Difference:
    """One result that differs, or what one side could not do."""

    seed: int
    kind: str
    text: str
    reason: str | None


class Server:
    """A process that runs models in OpenVINO, started again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, folder: Path) -> str:
        """Return ``ok``, a message of OpenVINO, ``crash`` or ``timeout``."""
        if self._process is None:
            command = [sys.executable, str(Path(__file__).with_name("openvino_server.py"))]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(folder, file=self._process.stdin, flush=True)
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        answer = self._process.stdout.readline().strip() if ready else "timeout"
        if not ready or not answer:
            self.close()
        return answer or "crash"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process = None


# --------------------------------------------------------------------------- making graphs


def make_graph(seed: int) -> Graph:
    """Return a random graph that ovir can run, with Results for all ends and some tensors between."""
    rng = np.random.default_rng(seed)
    graph = Graph(rng)
    rank = graph.integer(1, 5)
    graph.parameter([graph.choose(1, 2, 3, 4, 6) for _ in range(rank)], graph.choose("f32", "f32", "f32", "f16", "i32"))
    recipes = [recipe for recipe, weight in RECIPES for _ in range(weight)]
    wanted = graph.integer(3, 12)
    for _ in range(4 * wanted):
        if _operations(graph) >= wanted:
            break
        _extend(graph, recipes[int(rng.integers(len(recipes)))])
    read = {source for source, _ in graph.edges()}
    results = [t for t in graph.tensors if t.end not in read or graph.chance(0.15)]
    for tensor in results:
        graph.net.result(tensor.end)
    _relax(graph)
    return graph


def _operations(graph: Graph) -> int:
    return sum(layer.kind not in ("Parameter", "Const") for layer in graph.layers)


def _extend(graph: Graph, recipe: Any) -> None:
    """Add a layer; leave the graph as it was if the recipe finds nothing or makes something too large."""
    net = graph.net
    before = len(net.layers), len(net.edges), len(net.blob), net.count, len(graph.tensors), len(graph.layers)
    fed = dict(graph.feeds)
    try:
        recipe(graph)
        first = next(i for i, tensor in enumerate(graph.tensors) if not tensor.type)
        new = _measured(graph, graph.tensors[first:])
        if any(not tensor.shape or 0 < np.prod(tensor.shape) <= MOST_ELEMENTS for tensor in new):
            graph.tensors[first:] = new
            return
    except Unfit:
        pass
    del net.layers[before[0] :], net.edges[before[1] :], net.blob[before[2] :], graph.tensors[before[4] :]
    del graph.layers[before[5] :]
    net.count, graph.feeds = before[3], fed


def _measured(graph: Graph, tensors: list[Tensor]) -> list[Tensor]:
    """Return the tensors with the shapes and types that they have in a run."""
    net = replace(graph.net, layers=list(graph.net.layers), edges=list(graph.net.edges))
    for tensor in tensors:
        net.result(tensor.end)
    try:
        model = net.model()
        arrays = list(ovir.compile_model(model)(graph.feeds).values())
    except ovir.OvirError:
        raise Unfit from None
    types = [str(port.element_type) for port in model.outputs]
    return [replace(t, shape=a.shape, type=e) for t, a, e in zip(tensors, arrays, types, strict=True)]


def _relax(graph: Graph) -> None:
    """Declare some sizes of the inputs as unknown."""
    for number, layer in enumerate(graph.net.layers):
        if 'type="Parameter"' in layer:
            sizes = re.search(r'shape="([^"]*)"', layer)
            assert sizes is not None
            declared = ",".join("?" if size and graph.chance(0.15) else size for size in sizes[1].split(","))
            graph.net.layers[number] = layer.replace(sizes[0], f'shape="{declared}"')


# --------------------------------------------------------------------------- comparing


def differences(graph: Graph, seed: int, folder: Path, server: Server) -> list[Difference]:
    """Run a graph on both sides and return what differs."""
    graph.net.write(folder)
    np.savez(folder / "inputs.npz", **graph.feeds)
    try:
        model = ovir.read_model(folder / "model.xml")
        compiled = ovir.compile_model(model)
        ours = list(compiled(graph.feeds).values())
    except ovir.OvirError as error:
        return [Difference(seed, "ovir refuses", str(error), None)]
    answer = server.run(folder)
    if answer != "ok":
        kind = answer if answer in ("crash", "timeout") else "refused"
        return [Difference(seed, kind, answer, reason_of_message(graph, answer))]
    with np.load(folder / "expected.npz") as loaded:
        theirs = [loaded[f"out{i}"] for i in range(len(ours))]
    arrays = _arrays(graph, compiled)
    others = _disturbed(graph, arrays)
    found = []
    ends = [source for source, (target, _) in graph.edges() if 'type="Result"' in graph.net.layers[target]]
    for index, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        text = _difference(own, other, [run[index] for run in others], _rounding(graph))
        if text:
            path = upstream(graph, ends[index])
            trail = " ".join(
                graph.layers[number].kind for number in sorted(path) if graph.layers[number].kind != "Const"
            )
            reason = reason_of_value(graph, path, arrays)
            found.append(Difference(seed, "value", f"output {index} of {trail}: {text}", reason))
    return found


def upstream(graph: Graph, end: tuple[int, int]) -> set[int]:
    """Return the ids of the layers that an output depends on."""
    sources = graph.sources()
    pending, found = [end[0]], {end[0]}
    while pending:
        for source, _ in sources.get(pending.pop(), ()):
            if source not in found:
                found.add(source)
                pending.append(source)
    return found


def _arrays(graph: Graph, compiled: ovir.CompiledModel) -> dict[tuple[int, int], Any]:
    """Return all tensors of a run."""
    names = [layer.name for layer in compiled.model.layers if layer.outputs]
    results = compiled(graph.feeds, taps=names)
    found = {}
    for layer in compiled.model.layers:
        for port, array in zip(layer.outputs, results.taps.get(layer.name, ()), strict=False):
            found[layer.id, port.id] = array
    return found


def _error_of(graph: Graph, tensor: Tensor, arrays: dict[tuple[int, int], Any]) -> Any:
    """Return the rounding error of the elements of a tensor: relative to each, and for sums relative to the summands."""
    size = np.abs(arrays[tensor.end].astype(np.float64))
    if graph.layers[tensor.end[0]].kind in SUMS:
        inputs = [arrays[end] for end in graph.sources()[tensor.end[0]] if arrays[end].dtype.kind == "f"]
        size = size + max(np.abs(array[np.isfinite(array)]).max(initial=0) for array in inputs)
    return _rounding(graph) * np.where(np.isfinite(size), size, 0)


def _rounding(graph: Graph) -> float:
    halves = any(tensor.type == "f16" for tensor in graph.tensors)
    return ROUNDING["f16" if halves else "f32"]


def _disturbed(graph: Graph, arrays: dict[tuple[int, int], Any]) -> list[list[Any]]:
    """Return the results of runs in which a rounding error is added to each floating-point tensor."""
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(NOISY_RUNS):
        net = replace(graph.net, layers=list(graph.net.layers), edges=[], blob=bytearray(graph.net.blob))
        noisy: dict[tuple[int, int], tuple[int, int]] = {}
        for tensor in graph.tensors:
            if tensor.type in FLOATS:
                noise = rng.uniform(-1, 1, arrays[tensor.end].shape) * _error_of(graph, tensor, arrays)
                noisy[tensor.end] = net.op("Add", tensor.end, net.const(noise, tensor.type))
        for source, (layer, port) in graph.edges():
            begin = noisy.get(source, source)
            net.edges.append(
                f'<edge from-layer="{begin[0]}" from-port="{begin[1]}" to-layer="{layer}" to-port="{port}"/>'
            )
        try:
            runs.append(list(net.compiled()(graph.feeds).values()))
        except ovir.OvirError:
            continue
    return runs


def _difference(ours: Any, theirs: Any, others: list[Any], rounding: float) -> str | None:
    """Return how two results differ; None if they do not differ more than rounding errors explain."""
    if any(other.shape != ours.shape for other in others):
        return None  # the shape itself depends on rounding
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{ours.shape} and {theirs.dtype}{theirs.shape}"
    if ours.dtype.kind != "f":
        stable = np.ones(ours.shape, bool)
        for other in others:
            stable &= other == ours
        wrong = stable & (ours != theirs)
    else:
        with np.errstate(all="ignore"):
            a, b = ours.astype(np.float64), theirs.astype(np.float64)
            spread = np.zeros(a.shape)
            stable = np.ones(a.shape, bool)
            for other in others:
                stable &= np.isfinite(other) == np.isfinite(a)
                spread = np.fmax(spread, np.abs(other.astype(np.float64) - a))
            finite = np.abs(a[np.isfinite(a)])
            scale = np.maximum(np.abs(a), min(1.0, finite.max(initial=0)))
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 4 * spread + 4 * rounding * scale)
            wrong = stable & ~same
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} elements of {ours.dtype}{ours.shape} differ, first at {first}: ovir {ours[first]!r}, OpenVINO {theirs[first]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many graphs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first graph; the others follow")
    parser.add_argument("--keep", type=Path, help="a folder for the models that differ for no known reason")
    options = parser.parse_args()
    classes: Counter[str] = Counter()
    layers = unknown = 0
    server = Server()
    with tempfile.TemporaryDirectory() as name:
        for seed in range(options.seed, options.seed + options.count):
            graph = make_graph(seed)
            layers += _operations(graph)
            folder = Path(name)
            if options.keep is not None:
                folder = options.keep / str(seed)
                folder.mkdir(parents=True, exist_ok=True)
            found = differences(graph, seed, folder, server)
            for difference in found:
                classes[difference.reason or f"UNKNOWN: {difference.kind}"] += 1
                unknown += difference.reason is None
                if difference.reason is None:
                    print(f"{seed}: {difference.kind}: {difference.text}", flush=True)
    server.close()
    print(f"{options.count} graphs of {layers / options.count:.1f} layers")
    for reason, count in classes.most_common():
        print(f"{count:6} {reason}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
