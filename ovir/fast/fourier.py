"""Fourier transforms of blocks of lines or frames, which threads share."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.parallel import run_blocks, threads
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts, is_real
from ovir.fast.registry import fast
from ovir.ops.fourier import ISTFT, STFT, FourierBase, as_complex, framed

_BLOCK_ELEMENTS = 1 << 16
"""Elements that are transformed at once, so that they stay in a cache from axis to axis: 64 transforms of 128x128
numbers take 12 ms in blocks and 26 in one piece."""
_LEAST_PER_THREAD = 1 << 15
"""Elements for which a thread pays: it transforms them in 0.2 ms and takes 0.03 to wake."""


@fast(FourierBase, in_f32=True)
def fourier(op: FourierBase, binder: Binder, *inputs: Array) -> bool:
    data, axes = inputs[:2]
    if not is_real(data) or not all(map(binder.is_constant, range(1, len(inputs)))):
        return False
    shape, along, lengths = op.sizes(data.shape, axes, inputs[2] if len(inputs) > 2 else None)
    if not data.size or 0 in shape:
        return False
    if op.of_pairs and not data.flags.c_contiguous:
        copy = binder.scratch(data.shape, data.dtype)
        binder.call(np.copyto, copy, data)
        data = copy
    out = binder.output()
    source, target = as_complex(data) if op.of_pairs else data, as_complex(out) if op.to_pairs else out
    parts = [(source, target)]
    if others := [axis for axis in range(len(shape)) if axis not in along]:
        count = max(min(out.size // _LEAST_PER_THREAD, threads()), out.size // _BLOCK_ELEMENTS, 1)
        # Parts of the slowest axis lie in one piece.
        axis = next((axis for axis in others if shape[axis] >= count), max(others, key=lambda axis: shape[axis]))
        places = [(slice(None),) * axis + (cut,) for cut in cuts(shape[axis], count)]
        parts = [(source[place], target[place]) for place in places]
    call_shares(binder, [[(_transform, (op, x, lengths, along, y))] for x, y in parts])
    return True


def _transform(op: FourierBase, x: Array, lengths: list[int], axes: list[int], y: Array) -> None:
    if len(axes) == 1:
        op.transform(x, lengths, axes, out=y)
    else:
        np.copyto(y, op.transform(x, lengths, axes))


# --------------------------------------------------------------------------- short frames


@fast(STFT, in_f32=True)
def stft(op: STFT, binder: Binder, *inputs: Array) -> bool:
    signal, window, frame_size, frame_step = inputs
    if not (binder.is_constant(2) and binder.is_constant(3)) or not is_real(signal):
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
    binder.call(_transform_frames, frames, whole, target.reshape(-1, *target.shape[-2:]))
    return True


@fast(ISTFT, in_f32=True)
def istft(op: ISTFT, binder: Binder, *inputs: Array) -> bool:
    data, window, frame_size, frame_step = inputs[:4]
    if not all(map(binder.is_constant, range(2, len(inputs)))) or not is_real(data):
        return False
    if 0 in binder.output_shape():
        return False
    binder.call(_restore, op, data, window, int(frame_size.item()), int(frame_step.item()), binder.output())
    return True


def _transform_frames(frames: Array, window: Array, out: Array) -> None:
    """Compute out[b, f] = RDFT of frames[b, f] * window, a block of frames at a time."""
    batches, length, size = frames.shape
    count = min(max(_BLOCK_ELEMENTS // size, 1), length)
    parts = -(-length // count)

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for item in range(start, stop):
                batch, part = divmod(item, parts)
                block = slice(part * count, (part + 1) * count)
                np.fft.rfft(frames[batch, block] * window, axis=-1, out=out[batch, block])

    run_blocks(run, batches * parts, -(-_LEAST_PER_THREAD // (count * size)))


def _restore(op: ISTFT, data: Array, window: Array, size: int, step: int, out: Array) -> None:
    """Compute the signals of spectra, of which there is at least one."""
    spectra = as_complex(data).swapaxes(-1, -2)
    signals = out.reshape(-1, out.shape[-1])
    spectra = spectra.reshape(len(signals), *spectra.shape[-2:])
    frames, length = spectra.shape[1], out.shape[-1]
    weight = framed(window, size)
    norm = _Rows(size, step, frames, weight.dtype)
    norm.add(np.broadcast_to(weight * weight, (frames, size)))
    if op.normalized:
        weight = weight * weight.dtype.type(sqrt(size))
    wanted = slice(size // 2 if op.center else 0, None)

    def run(start: int, stop: int) -> None:
        count = max(_BLOCK_ELEMENTS // size, 1)
        with np.errstate(all="ignore"):
            for batch in range(start, stop):
                rows = _Rows(size, step, frames, weight.dtype)
                for first in range(0, frames, count):
                    rows.add(np.fft.irfft(spectra[batch, first : first + count], size) * weight, first)
                total, squares = (r.samples[wanted][:length] for r in (rows, norm))
                signals[batch] = 0
                np.divide(total, squares, out=signals[batch, : total.size], where=squares != 0)

    run_blocks(run, len(signals), -(-_LEAST_PER_THREAD // max(size * frames, 1)))


class _Rows:
    """A sum of overlapping frames, in rows as long as a step, so that all frames are added in a few passes."""

    def __init__(self, size: int, step: int, frames: int, dtype: np.dtype[Any]) -> None:
        step = step if frames > 1 else min(step, size)
        self._rows = np.zeros((max(frames, 1) + -(-size // step) - 1, step), dtype)
        self.samples = self._rows.reshape(-1)[: max(frames - 1, 0) * step + size]

    def add(self, frames: Array, first: int = 0) -> None:
        """Add frames; the first one begins in row ``first``."""
        step = self._rows.shape[1]
        for k in reversed(range(-(-frames.shape[1] // step))):  # each sample adds its frames in their order
            part = frames[:, k * step : (k + 1) * step]
            self._rows[first + k : first + k + len(part), : part.shape[1]] += part
