"""StringTensorPack and StringTensorUnpack."""

from __future__ import annotations

from ovir.export.registry import not_exported
from ovir.ops.string_tensor import StringTensorPack, StringTensorUnpack

not_exported(StringTensorPack, StringTensorUnpack, reason="ONNX cannot convert between strings and their bytes")
