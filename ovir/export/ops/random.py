"""RandomUniform and Multinomial."""

from __future__ import annotations

from ovir.export.registry import not_exported
from ovir.ops.random import Multinomial, RandomUniform

not_exported(RandomUniform, Multinomial, reason="ONNX does not define the numbers that a seed gives")
