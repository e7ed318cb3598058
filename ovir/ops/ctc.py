"""CTC decoders and loss: connectionist temporal classification over sequences of classes with a blank class."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i32
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import compute_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, Domain, Index, Inputs, Length, by_input, size_of
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

# --------------------------------------------------------------------------- greedy decoders


class CtcGreedyDecoderBase(Operator):
    """Base of decoders that take the most probable class of each step, merge repetitions if asked to, and drop blanks.

    The rest of the output is -1.
    """

    bounded = False

    def decode(self, data: Array, lengths: Array, blank: int, merge: bool) -> tuple[Array, Array]:
        """Return the classes [batch, time] that data [batch, time, classes] decodes to, and their number in each
        sequence."""
        shape = data.shape[:2]
        self.require(data.shape[2] > 0 or 0 in shape, "data of shape {} has no classes", data.shape)
        classes = data.argmax(axis=2) if 0 not in shape else np.zeros(shape, np.int64)
        steps = np.arange(shape[1])
        kept = (classes != blank) & (steps < lengths[:, np.newaxis])
        if merge:
            kept[:, 1:] &= classes[:, 1:] != classes[:, :-1]
        counts: Array = kept.sum(axis=1)
        decoded = np.full(shape, -1)
        decoded[steps < counts[:, np.newaxis]] = classes[kept]
        return decoded, counts


@operator("CTCGreedyDecoder", opset=1)
class CTCGreedyDecoder(CtcGreedyDecoderBase):
    """The most probable class of each step, with repetitions merged if ``ctc_merge_repeated`` and without blanks.

    A repetition is a class equal to the class of the previous step. The last class is the blank. A sequence ends before
    the first 0 in ``sequence_mask``. The rest of the output is -1.

    >>> scores = np.eye(3, dtype=np.float32)[[0, 0, 2, 1]].reshape(4, 1, 3)
    >>> ops.ctc_greedy_decoder(scores, np.ones((4, 1), np.float32))
    [[[[ 0.]] [[ 1.]] [[-1.]] [[-1.]]]]
    """

    takes = "data T[Time, N, C]; sequence_mask real[Time, N]; T real"
    gives = "T[N, Time, 1, 1]"
    recipe = "T narrow, sequence_mask narrow; C=1|2|5"
    arguments = "data sequence_mask merge_repeated:ctc_merge_repeated="
    domains = by_input(sequence_mask=ONE)
    ctc_merge_repeated: bool = attribute(default=True)

    def run(self, data: Array, sequence_mask: Array) -> Array:
        time, batch, classes = data.shape
        lengths = np.logical_and.accumulate(sequence_mask != 0, axis=0).sum(axis=0)
        decoded, _ = self.decode(data.transpose(1, 0, 2), lengths, classes - 1, self.ctc_merge_repeated)
        return decoded.astype(data.dtype).reshape(batch, time, 1, 1)


@operator("CTCGreedyDecoderSeqLen", opset=6)
class CTCGreedyDecoderSeqLen(CtcGreedyDecoderBase):
    """The most probable class of each step, with repetitions merged if ``merge_repeated`` and without blanks.

    A repetition is a class equal to the class of the previous step. ``sequence_length`` is the number of steps of each
    sequence. The blank is ``blank_index``, by default the last class. The rest of the first output is -1; the second is
    the number of classes of each sequence.

    >>> scores = np.eye(3, dtype=np.float32)[[0, 0, 2, 1]].reshape(1, 4, 3)
    >>> ops.ctc_greedy_decoder_seq_len(scores, [4])
    [[ 0 1 -1 -1]]
    [2]
    """

    takes = (
        "data real[N, Time, C]; sequence_length index[N]; ?blank_index index[]|[1]; classes_index_type index; "
        "sequence_length_type index"
    )
    gives = "classes classes_index_type[N, Time]; counts sequence_length_type[N]"
    recipe = "data narrow, blank_index = 0..0; C=1|2|5"
    domains = by_input(sequence_length=Length("data", axis=1), blank_index=Index("data", axis=-1, checked=False))
    merge_repeated: bool = attribute(default=True)
    classes_index_type: ElementType = attribute(default=i32)
    sequence_length_type: ElementType = attribute(default=i32)

    def run(self, data: Array, sequence_length: Array, blank_index: Array | None = None) -> tuple[Array, Array]:
        _, time, classes = data.shape
        outside = (sequence_length < 0) | (sequence_length > time)
        if outside.any():
            i = int(outside.argmax())
            self.fail("sequence_length[{}] = {} is outside [0, {}]", i, sequence_length[i], time)
        blank = classes - 1 if blank_index is None else int(blank_index.item())
        decoded, counts = self.decode(data, sequence_length, blank, self.merge_repeated)
        types = self.classes_index_type.to_dtype(), self.sequence_length_type.to_dtype()
        return decoded.astype(types[0]), counts.astype(types[1])


# --------------------------------------------------------------------------- CTCLoss


def _last_class(op: Operator, inputs: Inputs) -> Domain:
    last = size_of(op, inputs, "logits", -1) - 1
    return Domain(last, last)


@operator("CTCLoss", opset=4)
class CTCLoss(Operator):
    """-ln of the probability that a sequence of logits, after SoftMax, decodes to a sequence of labels.

    The probability is the sum over all paths (one class per step) that decode to the labels. A path is decoded by
    merging repetitions if ``ctc_merge_repeated`` and removing blanks. First the labels are reduced: to their first
    occurrences if ``unique``, else, with ``preprocess_collapse_repeated``, to the first of each run. Only the logits
    and labels within the given lengths count. The blank is ``blank_index``, by default the last class. The loss is +inf
    if no path decodes to the labels.

    >>> ops.ctc_loss(np.zeros((1, 3, 2), np.float32), [3], [[0, 0, 0]], [1], 1)
    [0.28768206]
    """

    takes = (
        "logits T[N, Time, C]; logit_length index[N]; labels index[N, Time]; label_length index[N]; "
        "?blank_index index[]; T real"
    )
    gives = "T[N]"
    recipe = "T narrow, blank_index = 0..0; C=2|3|5 Time=1|3|6"
    bounded = False
    unmatched = "compute the loss of CTC"
    domains = by_input(
        logit_length=Length("logits", axis=1, full=True),
        labels=lambda op, inputs: Domain(0, max(size_of(op, inputs, "logits", -1) - 2, 0)),  # without the blank
        label_length=Length("labels", axis=1),
        blank_index=_last_class,
    )
    preprocess_collapse_repeated: bool = attribute(default=False)
    ctc_merge_repeated: bool = attribute(default=True, misread="false")
    unique: bool = attribute(default=False)

    def work(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count the labels, and the blanks between them, at each step of each sequence."""
        batch, steps = (dim.upper for dim in inputs[0].shape.slice(0, 2))
        if batch is None or steps is None:
            return inf
        return super().work(inputs, outputs) + 10.0 * batch * steps * (2 * steps + 1)

    def temporary_bytes(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count what belongs to each state: four numbers, its label, and where paths may stay and skip."""
        batch, steps = (dim.lower for dim in inputs[0].shape.slice(0, 2))
        states = 2 * steps + 3
        number = max(inputs[0].element_type.bits // 8, 4)
        return super().temporary_bytes(inputs, outputs) + batch * states * (4.0 * number + 16)

    def run(self, logits: Array, logit_length: Array, labels: Array, label_length: Array, *blank_index: Array) -> Array:
        blank = int(blank_index[0].item()) if blank_index else logits.shape[2] - 1
        self._check(logits, logit_length, labels, label_length, blank)
        targets, counts = self._targets(labels, label_length, blank)
        logarithms = self._state_logarithms(logits, logit_length, targets, blank)
        # A path ends with the last label or with the blank after it.
        ends = 2 * counts[:, np.newaxis]
        last, after = (np.take_along_axis(logarithms, ends + i, axis=1)[:, 0] for i in (1, 2))
        loss = -np.logaddexp(last, after) + 0.0  # 0 instead of -0
        return np.asarray(loss.astype(logits.dtype))

    def _check(self, logits: Array, logit_length: Array, labels: Array, label_length: Array, blank: int) -> None:
        batch, time, classes = logits.shape
        self.require(0 <= blank < classes or not batch, "blank_index {} is outside [0, {}]", blank, classes - 1)
        for i, (steps, count) in enumerate(zip(logit_length.tolist(), label_length.tolist(), strict=True)):
            self.require(0 <= steps <= time, "logit_length[{}] = {} is outside [0, {}]", i, steps, time)
            message = "label_length[{}] = {} is outside [0, {}], the length of the logits"
            self.require(0 <= count <= steps, message, i, count, steps)
        counted = np.arange(time) < label_length[:, np.newaxis]
        wrong = counted & ((labels < 0) | (labels >= classes))
        if wrong.any():
            row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
            self.fail("labels[{},{}] = {} is outside [0, {}]", row, column, labels[row, column], classes - 1)
        if (counted & (labels == blank)).any():
            report(f"labels contain the blank, {blank}, to which no path decodes")

    def _targets(self, labels: Array, label_length: Array, blank: int) -> tuple[Array, Array]:
        """Return the labels that paths must decode to, padded with blanks, and the number of labels of each
        sequence."""
        kept = np.arange(labels.shape[1]) < label_length[:, np.newaxis]
        if self.unique:
            order = np.argsort(labels, axis=1, kind="stable")  # what is not kept comes after what it equals
            ordered = np.take_along_axis(labels, order, axis=1)
            is_first = np.ones(kept.shape, np.bool_)
            is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
            first = np.empty_like(kept)
            np.put_along_axis(first, order, is_first, axis=1)
            kept &= first
        elif self.preprocess_collapse_repeated:
            kept[:, 1:] &= labels[:, 1:] != labels[:, :-1]
        counts: Array = kept.sum(axis=1)
        targets = np.full((len(labels), counts.max(initial=0)), blank)
        targets[np.arange(targets.shape[1]) < counts[:, np.newaxis]] = labels[kept]
        return targets, counts

    def _state_logarithms(self, logits: Array, logit_length: Array, targets: Array, blank: int) -> Array:
        """Return ln of the probability of each state after the last step: blank, label 0, blank, label 1, ... blank.

        Two columns precede the states: no state at all, and the state before the first step.
        """
        batch, count = targets.shape
        states = np.full((batch, 2 * count + 1), blank)
        states[:, 1::2] = targets
        stays = np.logical_or(self.ctc_merge_repeated, states == blank)
        # Paths may go from a label to the next without a blank; the first label follows the start in the same way.
        skips = np.zeros(states.shape, np.bool_)
        skips[:, 1:2] = True
        differ = (targets[:, 1:] != targets[:, :-1]) | (not self.ctc_merge_repeated)
        skips[:, 3::2] = differ & (targets[:, :-1] != blank)

        computed = compute_dtype(logits.dtype)
        never = computed.type(-np.inf)
        logarithms = np.full((batch, states.shape[1] + 2), never)
        logarithms[:, 1] = 0
        for step in range(int(logit_length.max(initial=0))):
            scores = logits[:, step].astype(computed)
            top = scores.max(axis=1, keepdims=True)
            whole = np.log(np.exp(scores - top).sum(axis=1, keepdims=True)) + top
            reached = np.logaddexp(np.where(stays, logarithms[:, 2:], never), logarithms[:, 1:-1])
            reached = np.logaddexp(reached, np.where(skips, logarithms[:, :-2], never))
            reached += np.take_along_axis(scores, states, axis=1) - whole
            goes_on = (step < logit_length)[:, np.newaxis]
            np.copyto(logarithms[:, 2:], reached, where=goes_on)
            np.copyto(logarithms[:, 1:2], never, where=goes_on)
        return logarithms
