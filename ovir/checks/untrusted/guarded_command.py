"""A command that runs an untrusted model, in a process of its own within a budget."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.guard import ROOT, SIGXCPU
from ovir.checks.untrusted.paths import weights_beside
from ovir.diagnostics.codes import OUT_OF_MEMORY, OVER_BUDGET, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import shortened, size_text
from ovir.system.interrupts import uninterrupted
from ovir.system.processes import ChildProcess, ending_of


def run_guarded(
    command: Sequence[str], path: str, weights: str | None, budget: Budget, *, is_quiet: bool = False
) -> tuple[int, str] | Diagnostic:
    """Run a command of ovir, such as ``["run", "model.xml"]``, on the model at a path.

    Return its exit status and its messages, or the reason why its process was ended or had too little memory. The
    process has the standard output of this one, unless it ``is_quiet``. Its time and memory are limited, and the size
    of each file that it writes is limited to that of the memory.
    """
    seconds = budget.seconds_for(weights_beside(path) if weights is None else weights)
    limits = {"seconds": seconds, "memory": budget.memory, "file": budget.memory}
    arguments = [sys.executable, "-P", "-c", _PROGRAM, ROOT, json.dumps(limits), *command]
    output = subprocess.DEVNULL if is_quiet else None
    sys.stdout.flush()
    with uninterrupted():
        process = ChildProcess(arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)
    try:
        with process.killed_after(seconds) as expired:
            _, errors = process.communicate()
    finally:
        process.end()
    status = process.returncode
    if expired.is_set() or status == -SIGXCPU:
        message = f"the run takes more than {seconds:.3g} s"
    elif status < 0:
        memory = size_text(budget.memory)
        message = f"the process of the run ended with {ending_of(status)}, perhaps for lack of memory: it had {memory}"
    else:
        messages = errors.decode(errors="replace")
        if f"[{OUT_OF_MEMORY.id}]" not in messages and "out of memory" not in messages:
            return status, messages
        message = f"the run takes more than {size_text(budget.memory)} of memory"
    return diagnose(OVER_BUDGET, message, Place(path))


def trial_run(path: str, weights: str | None, budget: Budget) -> Iterator[Diagnostic]:
    """Run a model on random inputs, as ``ovir run`` does, and yield what it exceeds, or why it fails."""
    command = ["run", path, *(["--weights", weights] if weights is not None else [])]
    outcome = run_guarded(command, path, weights, budget, is_quiet=True)
    if isinstance(outcome, Diagnostic):
        yield outcome
        return
    status, messages = outcome
    if status:
        reasons = [line for line in messages.splitlines() if "error[" in line] or [f"it ends with status {status}"]
        message = f"a run on random inputs fails: {shortened(reasons[0], 300)}"
        yield diagnose(OVER_BUDGET, message, Place(path), severity=Severity.WARNING)


_PROGRAM = """
import json, os, sys
sys.path.append(sys.argv[1])
import ovir.cli.commands.run, ovir.runtime.executor
from ovir.checks.untrusted.child import limit
if hasattr(os, "fork"):  # other systems have no such limits
    limit(json.loads(sys.argv[2]))
from ovir.cli.main import main
status = main(sys.argv[3:])
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""
