"""The process that checks untrusted files: one request is one line of JSON on standard input.

Where the system can fork, this process never opens a file itself: each check runs in a fork of it, with limits, and
this process says how the fork ended. Elsewhere this process checks one file and ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ovir.checks.rules  # noqa: F401 - once, not in the fork of each check
from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.check_file import check_file
from ovir.core.reading import read_text
from ovir.diagnostics.codes import INTERNAL, OVER_BUDGET, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import OWN_FAULT, OvirError
from ovir.diagnostics.wording import size_text
from ovir.system.python_runtime import load_module


def main(extensions: Sequence[str]) -> None:
    """Answer all requests."""
    for number, path in enumerate(extensions):
        load_module(f"ovir_extension_{number}", path)
    _write({"ready": True})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if not hasattr(os, "fork"):
            _write(_answer(request))
            _write({"status": 0})
            return
        start = time.perf_counter()
        pid = os.fork()
        if not pid:
            _check_and_exit(request)
        _, status, usage = os.wait4(pid, 0)
        taken = {"seconds": time.perf_counter() - start, "memory": usage.ru_maxrss * _RSS_UNIT}
        if status:
            os.write(1, b"\n")  # the line before may be incomplete
        _write({"status": os.waitstatus_to_exitcode(status), **taken})


_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def _check_and_exit(request: Mapping[str, Any]) -> None:
    """Check a file in a fork, and end the fork in any case."""
    status = 1
    try:
        limit(request)
        _write(_answer(request))
        status = 0
    finally:
        os._exit(status)


def _write(message: Any) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(1, data) :]


def limit(request: Mapping[str, Any]) -> None:
    """Limit the resources and rights of this process, as far as the system can."""
    import resource

    # CPython before 3.14 keeps bytecode that a limit has cut, and no later process can then import the module.
    sys.dont_write_bytecode = True
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, request.get("file", 0)),  # a check writes no files
        (resource.RLIMIT_CPU, int(request["seconds"]) + 2),
    ]
    try:
        own = int(read_text("/proc/self/statm", "ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
        # The address space would include the mapping of the weights, whose size an untrusted file chooses.
        wanted.append((resource.RLIMIT_DATA, own + request["memory"]))
    except OSError:
        pass  # not Linux, where other systems do not enforce the limit
    for kind, limit in wanted:
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard < 0 else min(limit, hard), hard))


def _answer(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    path = request["path"]
    given = request["options"]
    options = CheckOptions(**{**given, "runtime": given["runtime"] and tuple(given["runtime"])})
    found: list[Diagnostic]
    try:
        found = check_file(path, request["weights"], options)
    except MemoryError:
        message = f"the check takes more than {size_text(request['memory'])} of memory"
        found = [diagnose(OVER_BUDGET, message, Place(path))]
    except OvirError as error:
        found = list(error.diagnostics)
    except Exception as error:  # a fault of ovir must not let a file pass
        message = f"ovir failed to check this file: {type(error).__name__}: {error}"
        found = [diagnose(INTERNAL, message[:2000], Place(path), hint=OWN_FAULT, severity=Severity.ERROR)]
    return [diagnostic.to_dict() for diagnostic in found]
