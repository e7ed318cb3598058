"""The C library keeps the memory that kernels free, so that their temporaries need no new pages."""

import platform
import subprocess
import sys

import pytest

# glibc notes before each block, in the second bit of its size, whether the block is mapped for itself. This tells of one
# block what counts of the whole process do not: threads and the collection of garbage make and free others meanwhile.
_SCRIPT = """
import ctypes, sys
import numpy as np
from ovir.runtime.arena import Arena
if sys.argv[1] == "arena":
    Arena()
block = np.empty(30 << 20, np.uint8)
print(ctypes.c_size_t.from_address(block.ctypes.data - ctypes.sizeof(ctypes.c_size_t)).value >> 1 & 1)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
@pytest.mark.parametrize(("first", "mapped"), [("arena", "0"), ("nothing", "1")])
def test_large_blocks_come_from_the_heap(first: str, mapped: str) -> None:
    told = []
    while len(told) < 3 and mapped not in told:  # a heap that cannot grow where it lies maps blocks, too
        run = subprocess.run([sys.executable, "-c", _SCRIPT, first], capture_output=True, text=True, check=True)
        told.append(run.stdout.strip())
    assert told[-1] == mapped
