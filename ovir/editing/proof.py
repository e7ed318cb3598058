"""Edits that prove themselves: the edited model must compute the results of the model before.

The proof itself, ``ovir.prove_edit``, needs packages above this one, so that it is looked up by its public name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ovir.editing.effect import Effect, measured
from ovir.editing.transaction import with_types
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer

NOT_WANTED = "not proven: the proof was left out"


@dataclass(eq=False, repr=False)
class ProvenEdit(Sequence[Layer]):
    """The layers that an edit has changed, as a sequence, and the proof of the result."""

    layers: list[Layer] = field(default_factory=list)
    """The layers that were changed."""
    changes: dict[str, list[str]] = field(default_factory=dict)
    """The keys of the layers that were replaced or left out, by their kind."""
    folded: list[str] = field(default_factory=list)
    """The keys of the layers that were computed before any run."""
    notes: list[str] = field(default_factory=list)
    """Sentences that users of the result have to know."""
    effect: Effect = field(default_factory=Effect)
    """The number of layers that were added, removed and changed, and the bytes of the constants."""
    verdict: str = NOT_WANTED
    """The outcome in words: the results agree, or why nothing was proven."""
    relation: dict[str, Any] = field(default_factory=dict)
    """The relation of the results before and after the edit: keyword arguments of ``ovir.prove_edit``."""

    def __repr__(self) -> str:
        return f"<ProvenEdit: {self.effect}; {self.verdict}>"

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: Any) -> Any:
        return self.layers[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.layers == list(other)

    __hash__ = None  # type: ignore[assignment]


@contextmanager
def proven(model: LayerGraph, verify: bool) -> Iterator[ProvenEdit]:
    """Carry out the edits of a block as ``editing`` does, and prove that the model computes the same as before.

    If it does not, raise ModelError and change nothing. Without ``verify``, nothing is proven.
    """
    with_types(model)
    before = model.clone() if verify else None
    edit, revision = ProvenEdit(), model.revision
    with measured(model) as edit.effect:
        yield edit
        with_types(model)
        if before is not None and model.revision == revision:
            edit.verdict = "nothing has changed"
        elif before is not None:
            edit.verdict = verdict(before, model.clone(), **edit.relation)


def verdict(before: LayerGraph, after: LayerGraph, **relation: Any) -> str:
    """Return the outcome of the proof that two models compute the same, in words; ModelError if they do not."""
    return str(sys.modules["ovir"].prove_edit(before, after, **relation))
