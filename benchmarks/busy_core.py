"""Models of real size while another program keeps one core busy: ovir against OpenVINO's CPU plugin.

    python -m benchmarks.busy_core [FOLDER] [--only REGEX] [--rounds N] [--write]

Both sides run in turns in one process, first on an idle machine, then beside a process that computes without end on the
last core. *Loss* is by how much that raises the ratio of ovir's time to OpenVINO's; below 1, OpenVINO loses more.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import openvino

import ovir
from benchmarks.common import PRECISE, Rows, folder_to_keep, in_turns, report
from benchmarks.real_models import MODELS, write
from ovir.system.processes import ChildProcess

_BUSY = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep the last core busy."""
    command = [sys.executable, "-c", _BUSY, str(max(os.sched_getaffinity(0)))]
    process = ChildProcess(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.end()


def measure(options: argparse.Namespace) -> Rows:
    for name in (name for name in MODELS if re.search(options.only, name)):
        with tempfile.TemporaryDirectory() as scratch:
            path = write(name, options.folder or Path(scratch))
            inputs = dict(np.load(path.with_name("inputs.npz")))
            ours = ovir.compile_model(path).create_infer_request()
            theirs = openvino.Core().compile_model(path, "CPU", PRECISE).create_infer_request()
            runs = {
                "ovir": partial(ours.infer, inputs, share_outputs=True),
                "OpenVINO": partial(theirs.infer, inputs, share_inputs=True, share_outputs=True),
            }
            idle = in_turns(runs, options.rounds)
            with busy_core():
                busy = in_turns(runs, options.rounds)
        before, after = (times["ovir"] / times["OpenVINO"] for times in (idle, busy))
        yield [name, *(times["ovir"] * 1e3 for times in (idle, busy)), before, after, after / before]


if __name__ == "__main__":
    head = ["model", "idle, ms", "busy, ms", "idle ratio", "busy ratio", "loss"]
    only = "^(resnet50|bert_base)_f32$|^(mobilenet_v2|vit_base)_f16$"
    report(__doc__, "busy core", head, measure, rounds=15, only=only, means=head[3:], options=folder_to_keep)
