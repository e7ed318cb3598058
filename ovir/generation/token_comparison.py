"""Two decoders that are fed with the same tokens, and the first step at which they choose different ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields
from ovir.diagnostics.errors import InputError


@dataclass(frozen=True)
class CandidateToken:
    """A token that one of two decoders chooses, with its logits in both."""

    id: int
    """The id of the token."""
    text: str
    """The text of the token alone."""
    logit: float
    """The logit in the first decoder."""
    other_logit: float
    """The logit in the other decoder."""


@dataclass(frozen=True)
class TokenDifference:
    """A step at which two decoders choose different tokens."""

    step: int
    """The position of the token among the generated ones, from 0."""
    chosen: CandidateToken
    """The choice of the first decoder, which both get next."""
    other: CandidateToken
    """The choice of the other decoder."""


@dataclass
class TokenComparison:
    """The steps of two decoders that both get the tokens chosen by the first one."""

    against: str
    """The other decoder: a device, or the path of a folder."""
    precision: str | None = None
    """The element type in which the device computes, if it says so."""
    first: TokenDifference | None = None
    """The first step at which they choose different tokens."""
    equal: int = 0
    """The number of steps at which they choose the same token."""
    errors: list[float] = field(default_factory=list)
    """The largest absolute difference of a logit at each step."""

    @property
    def worst(self) -> int:
        """Return the step with the largest difference of a logit."""
        return int(np.argmax(self.errors)) if self.errors else 0

    def add(self, logits: Array, other: Array, tokens: tuple[int, int], decode: Callable[[Sequence[int]], str]) -> None:
        """Add a step: the logits of both decoders, and the tokens that they choose."""
        if logits.shape != other.shape:
            sizes = f"{logits.size:,} logits, {self.against} has {other.size:,}"
            message = f"the decoders have different vocabularies: the first has {sizes}"
            raise InputError.usage(message)
        error = np.abs(logits.astype(np.float64) - other)
        error[logits == other] = 0.0  # infinities, too
        self.errors.append(float(error.max()))
        if tokens[0] == tokens[1]:
            self.equal += 1
        elif self.first is None:
            chosen, alternative = (
                CandidateToken(token, decode([token]), float(logits[token]), float(other[token])) for token in tokens
            )
            self.first = TokenDifference(len(self.errors) - 1, chosen, alternative)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON."""
        first = self.first
        return {
            **json_fields(self, "against", "precision"),
            "steps": len(self.errors),
            "equal": self.equal,
            "first": first and {"step": first.step, "chosen": vars(first.chosen), "other": vars(first.other)},
            "max_abs": self.errors,
        }
