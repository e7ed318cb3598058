"""The C library keeps the memory that kernels free, so that their temporaries need no new pages."""

import subprocess
import sys

import pytest

_SCRIPT = """
import ctypes, sys
import numpy as np
from ovir.runtime.arena import Arena
if sys.argv[1] == "arena":
    Arena()
fields = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
counts = type("mallinfo2", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in fields]})
read = ctypes.CDLL(None).mallinfo2
read.restype = counts
before = read().hblks
block = np.empty(4 << 20, np.uint8)
print(read().hblks - before)
"""


@pytest.mark.parametrize(("first", "mapped"), [("arena", "0"), ("nothing", "1")])
def test_large_blocks_come_from_the_heap(first: str, mapped: str) -> None:
    run = subprocess.run([sys.executable, "-c", _SCRIPT, first], capture_output=True, text=True)
    if "mallinfo2" in run.stderr:
        pytest.skip("the C library is not glibc 2.33 or newer")
    assert run.stdout.strip() == mapped, run.stderr
