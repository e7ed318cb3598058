"""ScaledDotProductAttention."""

from __future__ import annotations

from ovir.export.exporters import exports_parts
from ovir.ops.attention import ScaledDotProductAttention

# onnxruntime 1.32 takes 1.3 to 3 times as long for Attention of opset 23.
exports_parts(ScaledDotProductAttention, to="MatMul, Add or Where, Softmax and MatMul")
