"""What recipes draw: models that inference accepts, but for what they leave to chance."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from ovir.fuzzing.cases import draw
from ovir.fuzzing.making import VERSIONS, Make
from ovir.ops import find

LEFT_TO_CHANCE = {
    "AvgPool|MaxPool": "the (batch|channel) dimension of data .* is 0|must be smaller than the window's",
    "BatchNormInference": "must have at least one channel",
    "Broadcast": "cannot be broadcast to .* in mode pdpd",
    "ConvertPromoteTypes": "have no common type that holds the values of both",
    "(Binary|Deformable|Group|)Convolution": "the window is too large",
    "ConvolutionBackpropData": "the output has no element",
    "DeformablePSROIPooling": "where output_dim is",
    "EmbeddingBag(Offsets|Packed)": "reduction mean does not allow per_sample_weights",
    "ErfInv|Gelu|Mish|SoftPlus|SoftSign": "must be of a floating-point type, got [iu]",
    "Pad": "mode edge allows at most 0",
    "SliceScatter": "must have the shape of the slice",
    "SoftMax": r"axis 1 is outside \[-1, 0\]",
    "StridedSlice": "which shrink_axis_mask drops",
    "TopK": "k is .*, more than the size",
}
"""Why inference may refuse what the recipe of an operation draws."""


@pytest.mark.parametrize("is_small", [False, True])
def test_recipes_draw_legal_models(is_small: bool) -> None:
    found = set()
    for kind, opset in VERSIONS:
        cls = find(kind, opset)
        assert cls is not None
        reason = next((text for name, text in LEFT_TO_CHANCE.items() if re.fullmatch(name, kind)), "(?!)")
        for number in range(12):
            made = Make(kind, random.Random(number), opset, is_small=is_small)
            if not draw(made, cls, np.random.default_rng(number)) and not re.search(reason, str(made.refusal)):
                found.add((kind, opset, str(made.refusal)))
    assert not found
