"""Measure whole commands on a model with gigabytes of weights, and on one that differs only in having tiny weights.

    python -m benchmarks.whole_tools [FOLDER] [--only REGEX] [--write]

FOLDER keeps the models and what the commands write, if it is given. Each command is a process. Its memory is sampled
together with that of the processes that it starts, as the peak in MiB of what belongs to the processes themselves.
*Mapped* also counts pages of mapped files, which the system takes back when it needs them. What a command costs
because of the weights is what it takes more on the real model than on the tiny one.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

import ovir
from benchmarks.common import Rows, folder_to_keep, report
from benchmarks.real_models import Inputs, Weights, decoder, decoder_inputs, write
from ovir.system.processes import ChildProcess

MODEL = "decoder_0_5b_f16"
HEAD = ["command", "tiny, s", "real, s", "tiny, MiB", "real, MiB", "real and mapped, MiB"]

_SAMPLE = 0.005
"""Seconds between two looks at the memory of a command."""
_TOKENS = 4
"""The tokens that the commands run the model on: few, so that tensors are smaller than the weights."""


class Cost(NamedTuple):
    """What a command took: the seconds, and the peaks in MiB without and with mapped files."""

    seconds: float
    memory: float
    mapped: float


def measured(arguments: list[str]) -> Cost:
    """Run a command of ovir and return what it took."""
    start = time.perf_counter()
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with ChildProcess([sys.executable, "-m", "ovir", *arguments], **silent) as process:
        watched, memory, mapped = psutil.Process(process.pid), 0, 0
        while process.poll() is None:
            own, both = _memory(watched)
            memory, mapped = max(memory, own), max(mapped, both)
            time.sleep(_SAMPLE)
        seconds = time.perf_counter() - start
        assert process.stderr is not None
        error = process.stderr.read().decode()
    if process.returncode not in (0, 1) or "Traceback" in error:
        raise SystemExit(f"ovir {' '.join(arguments)} failed:\n{error}")
    return Cost(seconds, memory / 2**20, mapped / 2**20)


def _memory(process: psutil.Process) -> tuple[int, int]:
    """Return the bytes of a process and all that it has started, without and with mapped files."""
    own = both = 0
    with contextlib.suppress(psutil.NoSuchProcess):  # one has ended
        for one in (process, *process.children(recursive=True)):
            found = one.memory_info()
            own, both = own + found.rss - found.shared, both + found.rss
    return own, both


def tiny(folder: Path) -> Path:
    """Write the decoder with tiny weights, but as many layers."""
    path = folder / f"tiny_{MODEL}" / "model.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    model, _ = decoder(Weights("f16"), width=256, wide=256, layers=24, heads=2, groups=1, vocabulary=512)
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
    inputs: Inputs = decoder_inputs(np.arange(_TOKENS)[np.newaxis])
    np.savez(work / "inputs.npz", **inputs)


def measure(options: argparse.Namespace) -> Rows:
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        planned = []
        for path in (tiny(folder), write(MODEL, folder)):
            work = path.with_name("work")
            work.mkdir(exist_ok=True)
            write_inputs(work)
            planned.append(commands(path, with_other_weights(path, work), work))
        for title, small in planned[0].items():
            if re.search(options.only, title):
                costs = [measured(words) for words in (small, planned[1][title])]
                yield [title, *(cost.seconds for cost in costs), *(cost.memory for cost in costs), costs[1].mapped]


if __name__ == "__main__":
    report(__doc__, "whole tools", HEAD, measure, rounds=1, options=folder_to_keep)
