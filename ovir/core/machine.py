"""Properties of the machine."""

from __future__ import annotations

import os
from functools import cache


@cache
def physical_memory() -> int | None:
    """Return the size of main memory in bytes; None if the system does not provide it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
