"""What a comparison has found so far, for some of the sets of inputs; parts of it that others have found are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ovir.debugging.comparison import Comparison, LayerDifference, NotCompared, OutputDifference, Tally, severity
from ovir.debugging.criterion import Criterion
from ovir.debugging.others import OtherBase
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.model import Model


@dataclass
class Findings:
    """Differences by layer and output. Layers are named by their key, so that processes can exchange findings."""

    steps: list[str] = field(default_factory=list)
    """The layers that can be compared, in the order of the run."""
    layers: dict[str, dict[int, Tally]] = field(default_factory=dict)
    """The comparisons of each layer by the position of its output."""
    outputs: dict[int, Tally] = field(default_factory=dict)
    contributions: dict[str, float] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    """The keys of layers that have another name in the other model."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why layers were not compared."""
    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)
    failed: bool = False
    """Whether the other side failed to compute the outputs."""
    description: str = ""
    """What the other side says about itself, here and below."""
    precision: str | None = None
    not_compared: list[NotCompared] = field(default_factory=list)
    sides: tuple[str, str] = OtherBase.sides
    outputs_first: bool = False

    def describe(self, side: OtherBase) -> None:
        """Record what the other side says about itself after its runs."""
        self.diagnostics.update(dict.fromkeys(side.diagnostics))
        self.description, self.precision = side.description, side.precision
        self.not_compared, self.sides = side.not_compared, side.sides
        self.outputs_first = side.outputs_first

    def tally(self, layer: Layer, position: int) -> Tally:
        """Return the comparisons of an output of a layer."""
        return self.layers.setdefault(layer.key, {}).setdefault(position, Tally())

    def add(self, later: Findings) -> None:
        """Add what has been found for later sets of inputs."""
        for key, tallies in later.layers.items():
            own = self.layers.setdefault(key, {})
            for position, tally in tallies.items():
                own.setdefault(position, Tally()).merge(tally)
        for index, tally in later.outputs.items():
            self.outputs.setdefault(index, Tally()).merge(tally)
        for key, contribution in later.contributions.items():
            self.contributions[key] = max(self.contributions.get(key, 0.0), contribution)
        self.others.update(later.others)
        self.skipped = {**later.skipped, **self.skipped}
        self.diagnostics.update(later.diagnostics)
        self.failed |= later.failed
        self.steps = self.steps or later.steps
        self.description, self.precision = later.description, later.precision
        self.not_compared, self.sides = later.not_compared, later.sides
        self.outputs_first = later.outputs_first

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was compared."""
        return not (self.outputs or self.layers or self.failed)

    def outputs_agree(self, names: Sequence[str]) -> bool:
        """Return whether outputs were compared and are within the tolerance."""
        compared = self.outputs.values()
        return bool(compared) and not self.failed and all(tally.difference(names).within for tally in compared)

    def result(self, model: Model, criterion: Criterion, mode: str, names: Sequence[str]) -> Comparison:
        """Return the result for sets of inputs with these names."""
        layers = {layer.key: layer for layer in model.layers}
        compared = [layers[key] for key in self.steps if key in self.layers]
        skipped = [layers[key] for key in self.steps if key in self.skipped and key not in self.layers]
        return Comparison(
            model=model.path or model.name or "the model",
            against=self.description,
            precision=self.precision,
            mode=mode,
            sets=len(names),
            criterion=criterion,
            outputs=[
                OutputDifference(index, model.outputs[index].any_name, tally.difference(names))
                for index, tally in sorted(self.outputs.items())
            ],
            layers=[self._layer(layer, names) for layer in compared],
            not_compared=[
                *(NotCompared(x.id, x.key, x.type, self.skipped[x.key]) for x in skipped),
                *self.not_compared,
            ],
            values=self.sides,
            diagnostics=list(self.diagnostics),
            failed=self.failed,
        )

    def _layer(self, layer: Layer, names: Sequence[str]) -> LayerDifference:
        differences = {position: tally.difference(names) for position, tally in self.layers[layer.key].items()}
        position = max(differences, key=lambda place: severity(differences[place].worst))
        return LayerDifference(
            *(layer.id, layer.key, layer.type, layer.version, position),
            tensor=differences[position],
            contribution=self.contributions[layer.key],
            other=self.others.get(layer.key),
            has_bodies=bool(layer.bodies),
        )
