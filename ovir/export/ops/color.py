"""Conversions between NV12, I420 and RGB or BGR."""

from __future__ import annotations

from ovir.export.exporters import exports_parts
from ovir.ops.color import BGRtoNV12, I420toBGR, I420toRGB, NV12toBGR, NV12toRGB, RGBtoNV12

exports_parts(NV12toRGB, NV12toBGR, I420toRGB, I420toBGR, to="Mul, Add, Clip, Concat")
exports_parts(RGBtoNV12, BGRtoNV12, to="Mul, Add, Clip, ReduceSum, Concat")
