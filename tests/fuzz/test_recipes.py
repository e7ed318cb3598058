"""What recipes draw: models that inference accepts, but for what they leave to chance."""

from __future__ import annotations

import random
import re

import numpy as np

from ovir.fuzzing.cases import draw
from ovir.fuzzing.making import VERSIONS, Make
from ovir.ops import find

LEFT_TO_CHANCE = {
    "AvgPool|MaxPool": "the (batch|channel) dimension of data .* is 0|must be smaller than the window's",
    "BatchNormInference": "must have at least one channel",
    "Broadcast": "cannot be broadcast to .* in mode pdpd",
    "ConvertPromoteTypes": "have no common type that holds the values of both",
    "(Binary|Deformable|Group|)Convolution": "the window is too large",
    "DeformablePSROIPooling": "where output_dim is",
    "EmbeddingBag(Offsets|Packed)": "reduction mean does not allow per_sample_weights",
    "Pad": "mode edge allows at most 0",
    "SoftMax": r"axis 1 is outside \[-1, 0\]",
    "TopK": "k is .*, more than the size",
}
"""Why inference may refuse what the recipe of an operation draws."""


def test_recipes_draw_legal_models() -> None:
    found, used = set(), set()
    for kind, opset in VERSIONS:
        cls = find(kind, opset)
        reason = next((text for name, text in LEFT_TO_CHANCE.items() if re.fullmatch(name, kind)), "(?!)")
        for number in range(8):
            made = Make(kind, random.Random(number), opset, is_small=number % 2 == 1)
            if draw(made, cls, np.random.default_rng(number)):
                continue
            (used if re.search(reason, str(made.refusal)) else found).add((kind, opset, str(made.refusal)))
    assert not found
    kinds = {kind for kind, _, _ in used}
    assert not [name for name in LEFT_TO_CHANCE if not any(re.fullmatch(name, kind) for kind in kinds)]
