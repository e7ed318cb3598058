"""What every kernel promises (see ``Operator``), checked at each call while tests run.

The kernels of all registered operations, and those that ``prepare`` makes, are wrapped. What a call breaks is noted in
``FAULTS`` and not raised on the spot, where it could be taken for the error that a test expects.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ovir.ops
from ovir.ops.operator import Operator
from ovir.ops.opsets import CLASSES
