"""Measure whole commands on a model with gigabytes of weights, and on one that differs only in having tiny weights.

    python -m benchmarks.whole_tools FOLDER [--model decoder_0_5b_f16] [--only REGEX] [--write]

FOLDER receives the models and what the commands write. Each command is a process. Its memory is sampled together with
that of the processes that it starts: *memory* is the peak of what belongs to the processes themselves; *mapped* also
counts pages of mapped files, which the system takes back when it needs them. What a command costs because of the
weights is what it takes more on the real model than on the tiny one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ovir
from benchmarks.common import write_figures
from benchmarks.real_models import MODELS, Weights, decoder, write

_SAMPLE = 0.005
"""Seconds between two looks at the memory of a command."""
_TOKENS = 4
"""The tokens that the commands run the model on: few, so that tensors are smaller than the weights."""


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    memory: float
    """The peak in MiB, without mapped files."""
    mapped: float
    """The peak in MiB, with mapped files."""
    status: int


def measured(arguments: list[str]) -> Cost:
    """Run a command of ovir and return what it took."""
    start = time.perf_counter()
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", "ovir", *arguments], **silent) as process:  # type: ignore[call-overload]
        memory = mapped = 0
        while process.poll() is None:
            states = [_state(number) for number in _tree(process.pid)]
            memory = max(memory, sum(own for own, _ in states))
            mapped = max(mapped, sum(both for _, both in states))
            time.sleep(_SAMPLE)
        seconds = time.perf_counter() - start
        error = process.stderr.read().decode()
    if process.returncode not in (0, 1) or "Traceback" in error:
        raise SystemExit(f"ovir {' '.join(arguments)} failed:\n{error}")
    return Cost(seconds, memory / 1024, mapped / 1024, process.returncode)


def _tree(number: int) -> Iterator[int]:
    """Yield the ids of a process and all that it has started."""
    yield number
    try:
        tasks = list(Path(f"/proc/{number}/task").iterdir())
        children = " ".join((task / "children").read_text() for task in tasks).split()
    except OSError:  # it has ended
        return
    for child in children:
        yield from _tree(int(child))


def _state(number: int) -> tuple[int, int]:
    """Return the KiB of memory of a process without and with mapped files."""
    try:
        text = Path(f"/proc/{number}/status").read_text()
    except OSError:  # it has ended
        return 0, 0
    sizes = {name: int(size) for name, size in re.findall(r"(Rss\w+):\s*(\d+)", text)}
    own = sizes.get("RssAnon", 0) + sizes.get("RssShmem", 0)
    return own, own + sizes.get("RssFile", 0)


# --------------------------------------------------------------------------- models and commands


def tiny(name: str, folder: Path) -> Path:
    """Write the decoder of a name with tiny weights, but as many layers."""
    path = folder / f"tiny_{name}" / "model.xml"
    make, form = MODELS[name]
    if not isinstance(make, partial) or make.func is not decoder:
        raise SystemExit(f"{name} is no decoder, whose weights could be made smaller")
    path.parent.mkdir(parents=True, exist_ok=True)
    sizes = {"width": 256, "wide": 256, "heads": 2, "groups": 1, "vocabulary": 512}
    model, _ = decoder(Weights(form), **{**make.keywords, **sizes})
    ovir.save_model(model, path)
    return path


def commands(path: Path, other: Path, work: Path) -> dict[str, list[str]]:
    """Return the commands to measure on a model, and on a copy with a few other weights, in an order in which each
    finds what it reads."""
    model, changed, inputs = str(path), str(other), ["--input", str(work / "inputs.npz")]
    renamed, part, onnx, record = (str(work / name) for name in ("renamed.xml", "part.xml", "model.onnx", "record.npz"))
    return {
        "show": ["show", model],
        "infer": ["infer", model],
        "check": ["check", model],
        "edit --rename": ["edit", model, "--rename", "input_ids=tokens", "-o", renamed],
        "edit --compress-to-fp16": ["edit", model, "--compress-to-fp16", "-o", str(work / "half.xml")],
        "extract": ["extract", model, "--outputs", _middle(path), "-o", part],
        "diff, equal weights": ["diff", model, renamed],
        "diff, other weights": ["diff", model, changed],
        "export --external-data": ["export", model, "--external-data", "-o", onnx],
        "run --record": ["run", model, *inputs, "--record", record],
        "compare with OpenVINO": ["compare", model, "--against", "openvino:CPU", *inputs],
        "compare --isolated with OpenVINO": ["compare", model, "--isolated", "--against", "openvino:CPU", *inputs],
        "compare with a model": ["compare", model, changed, *inputs],
        "compare with a recording": ["compare", model, "--against", record, *inputs],
        "bisect with OpenVINO": ["bisect", model, "--against", "openvino:CPU", "--rtol", "1e-9", *inputs],
        "bisect with a model": ["bisect", model, changed, *inputs],
        "bisect with a recording": ["bisect", changed, "--against", record, *inputs],
    }


def _middle(path: Path) -> str:
    """Return the name of a layer in the middle of the model that a layer of weights feeds."""
    products = [layer.name for layer in ovir.read_model(path).layers if layer.type == "MatMul"]
    return products[len(products) // 2]


def with_other_weights(path: Path, work: Path) -> Path:
    """Return a copy of a model with another byte in the middle of each hundredth of the weights."""
    target = work / "changed.xml"
    shutil.copyfile(path, target)
    shutil.copyfile(path.with_suffix(".bin"), target.with_suffix(".bin"))
    text = target.read_bytes()
    target.write_bytes(re.sub(rb"<\?ovir-weights[^>]*\?>", b"", text))  # the mark of the other bytes
    data = np.memmap(target.with_suffix(".bin"), np.uint8, "r+")
    data[:: max(len(data) // 100, 1)] ^= 1
    data.flush()
    return target


def write_inputs(work: Path) -> None:
    tokens = np.arange(_TOKENS)[np.newaxis]
    ones = np.ones_like(tokens)
    inputs = {"input_ids": tokens, "attention_mask": ones, "position_ids": tokens, "beam_idx": np.zeros(1, np.int32)}
    np.savez(work / "inputs.npz", **inputs)  # type: ignore[arg-type]  # mypy takes them for allow_pickle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="decoder_0_5b_f16", help="a decoder of benchmarks.real_models")
    parser.add_argument("--only", default="", metavar="REGEX", help="commands")
    parser.add_argument("--write", action="store_true", help="write the table to docs/performance.md")
    options = parser.parse_args()
    paths = {"tiny": tiny(options.model, options.folder), "real": write(options.model, options.folder)}
    planned: dict[str, dict[str, list[str]]] = {}
    for kind, path in paths.items():
        work = options.folder / f"whole_{kind}"
        work.mkdir(exist_ok=True)
        write_inputs(work)
        planned[kind] = commands(path, with_other_weights(path, work), work)
    sizes = {kind: path.with_suffix(".bin").stat().st_size / 2**20 for kind, path in paths.items()}
    lines = [
        f"Weights of {sizes['tiny']:.0f} and {sizes['real']:,.0f} MiB ({options.model}); memory in MiB.",
        "",
        "| command | tiny, s | real, s | tiny, memory | real, memory | real, mapped |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for title in planned["tiny"]:
        if re.search(options.only, title):
            costs = {kind: measured(planned[kind][title]) for kind in paths}
            small, large = costs["tiny"], costs["real"]
            numbers = f"{small.seconds:.1f} | {large.seconds:.1f} | {small.memory:,.0f} | {large.memory:,.0f}"
            lines.append(f"| {title} | {numbers} | {large.mapped:,.0f} |")
            print(lines[-1], flush=True)
    if options.write:
        write_figures("whole tools", lines)


if __name__ == "__main__":
    main()
