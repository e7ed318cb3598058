"""The choice of the next token from its logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.errors import InputError, require_counts

GENERATION = "generation_config.json"
"""The file of a folder that says how tokens are chosen."""
MAX_TOKENS = 100
"""The number of tokens to generate unless the arguments say otherwise."""


@dataclass(frozen=True)
class Sampling:
    """The choice of tokens: the most probable one, or one that is drawn.

    Tokens are drawn if there is a temperature above 0, or ``top_k``, ``top_p`` or ``min_p``, with which the temperature
    is 1 unless it is given. ``top_k`` limits the draw to so many tokens, ``top_p`` to the fewest tokens that have
    together this probability, and ``min_p`` to those with at least this part of the probability of the best one.
    ``repetition_penalty`` makes tokens of the prompt and the text less probable, whether tokens are drawn or not.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        """Raise InputError for arguments that cannot be used."""
        t, penalty = self.temperature, self.repetition_penalty
        if t is not None and not (_is_number(t) and 0 <= t < math.inf):
            raise InputError.usage(f"must be a number of 0 or more, got {t!r}", option="temperature")
        require_counts(top_k=self.top_k)
        for name, p in (("top_p", self.top_p), ("min_p", self.min_p)):
            if p is not None and not (_is_number(p) and 0 < p <= 1):
                raise InputError.usage(f"must be a number above 0 and at most 1, got {p!r}", option=name)
        if penalty is not None and not (_is_number(penalty) and 0 < penalty < math.inf):
            raise InputError.usage(f"must be a number above 0, got {penalty!r}", option="repetition_penalty")
        require_counts(0, seed=self.seed)
        limits = {"top_k": self.top_k, "top_p": self.top_p, "min_p": self.min_p}
        if t == 0 and (given := next((name for name, limit in limits.items() if limit is not None), None)):
            raise InputError.usage("has no effect with a temperature of 0, which takes the best token", option=given)
        if self.seed is not None and not self.draws:
            reason = "has no effect: tokens are drawn only with a temperature, or a limit such as top-k or top-p"
            raise InputError.usage(reason, option="seed")

    @property
    def draws(self) -> bool:
        """Return whether tokens are drawn."""
        return bool(self.temperature) or any(limit is not None for limit in (self.top_k, self.top_p, self.min_p))

    def choose(self, logits: Array, draw: float, seen: Sequence[int] = ()) -> int:
        """Return a token; ``draw``, a random number from 0 to 1, decides which if tokens are drawn.

        ``seen`` has the tokens of the prompt and of the text.
        """
        if self.repetition_penalty is not None and seen:
            places = np.array(seen)
            found = logits[places]
            logits = logits.copy()
            logits[places] = np.where(found < 0, found * self.repetition_penalty, found / self.repetition_penalty)
        if not self.draws:
            return int(logits.argmax())
        order = np.argsort(-logits, kind="stable")[: self.top_k]
        scaled = logits[order].astype(np.float64) / (self.temperature or 1.0)
        shares = np.exp(scaled - scaled[0])
        sums = np.cumsum(shares) / shares.sum()
        if self.top_p is not None:
            sums = sums[: int(np.searchsorted(sums, self.top_p)) + 1]
        if self.min_p is not None:
            sums = sums[: np.count_nonzero(shares >= self.min_p)]
        return int(order[np.searchsorted(sums, draw * sums[-1])])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
