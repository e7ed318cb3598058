"""Fourier transforms of short frames."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.registry import fast
from ovir.kernels.blocked import compute_dtype
from ovir.kernels.fourier import as_complex
from ovir.ops.stft import ISTFT, STFT, transform_frames


@fast(STFT)
def stft(op: STFT, binder: Binder, *inputs: Array) -> bool:
    signal, window, frame_size, frame_step = inputs
    if not (binder.is_constant(2) and binder.is_constant(3)) or compute_dtype(signal.dtype) != signal.dtype:
        return False
    if 0 in binder.output_shape() or not (signal.dtype == window.dtype and signal.flags.c_contiguous):
        return False
    out = binder.output()
    target = as_complex(out)
    target = target.swapaxes(-1, -2) if op.transpose_frames else target
    size, step = int(frame_size.item()), int(frame_step.item())
    source = signal.reshape(-1, signal.shape[-1])
    frames = np.lib.stride_tricks.sliding_window_view(source, size, axis=1)[:, ::step]
    whole = np.zeros(size, signal.dtype)
    first = (size - window.size) // 2
    binder.call(np.copyto, whole[first : first + window.size], window)
    binder.call(transform_frames, frames, whole, target.reshape(-1, *target.shape[-2:]))
    return True


@fast(ISTFT)
def istft(op: ISTFT, binder: Binder, *inputs: Array) -> bool:
    data, window, frame_size, frame_step = inputs[:4]
    if not all(map(binder.is_constant, range(2, len(inputs)))) or compute_dtype(data.dtype) != data.dtype:
        return False
    if 0 in binder.output_shape():
        return False
    binder.call(op.restore, data, window, int(frame_size.item()), int(frame_step.item()), binder.output())
    return True
