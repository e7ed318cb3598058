"""The search for the first tensor of a whole run that differs, and for the layers that may be at fault."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ovir.analysis.tensor_comparison import Criterion, severity
from ovir.core.arrays import Array
from ovir.debugging import candidates
from ovir.debugging.bisection import Bisection, Probe, Suspect, Verdict
from ovir.debugging.candidates import Candidate
from ovir.debugging.comparison import Comparison, TensorDifference
from ovir.debugging.comparison_session import Session
from ovir.debugging.comparison_setup import InputSet, Progress
from ovir.debugging.reproducer import Reproducer
from ovir.debugging.sides import Side
from ovir.debugging.tensor_sides import Recorded
from ovir.diagnostics.errors import OvirError
from ovir.editing.extraction import runnable_part
from ovir.graph.layers import Layer, Port
from ovir.graph.order import trace_back
from ovir.runtime.compiled import CompiledModel

_NAME = "the inputs"
"""The name of the only set of inputs."""


class TensorSearch:
    """Searches for the first tensor that differs, and for the suspects, of which at least one layer is at fault.

    The suspects are the layers between the tensors that agree and the first one that differs; there are several if the
    other side does not have their tensors. One of them is at fault if ovir, given the other side's tensors before them,
    computes another tensor than the other side has after them. If it computes the same, differences within the
    tolerance have grown into the one that was found, and the search goes back past tensors that are not equal.
    """

    def __init__(self, whole: Candidate, side: Side, criterion: Criterion) -> None:
        self._whole = whole
        self._side = side
        self._criterion = criterion
        self._layers = [layer for layer in map(whole.model.layer, candidates.layers_of(whole)) if not layer.is_dead]
        self._known: dict[Port, TensorDifference] = {}
        """The tensors that were compared."""
        self._reasons: dict[str, str] = {}
        """The reasons why layers were not compared."""
        self._reproducer: Reproducer | None = None
        """The part of the suspects, once it is known to differ."""

    def run(self, result: Bisection, progress: Progress | None) -> Reproducer | None:
        """Compare all tensors that the other side has, and enter the conclusions in ``result``; return the part of the
        suspects, if it is known to differ."""
        session = Session(self._whole.model, self._side, self._criterion, progress)
        compared = session.run([InputSet(_NAME, lambda: self._whole.feeds)], "cumulative")
        self._collect(session)
        result.runs, result.layers, result.diagnostics = 1, len(self._layers), compared.diagnostics
        result.not_compared = [x for layer in self._layers if (x := self._suspect(layer)).reason is not None]
        probes = []
        if ends := self._first_that_differ():
            probes.append(self._probe(ends, self._verdict(ends)))
        failing, problem = self._first_that_fails(session, compared)
        if failing:  # only failures count, as differences before them may have other reasons
            ends = failing
            earlier = [probe for probe in probes if probe.count < self._count(ends)]
            probes = [*earlier, self._probe(ends, Verdict(within=False, problem=problem))]
        if ends:
            result.probes = probes
            result.runs += self._find_suspects(ends, session, result, fails=bool(failing))
        if not failing:
            ports = self._outputs()
            is_new = not result.probes or result.probes[-1].count < len(self._layers)
            if self._layers and ports and is_new and all(port in self._known for port in ports):
                result.probes.append(Probe.of(self._layers[-1], len(self._layers), self._verdict(ports)))
        return self._reproducer

    def _collect(self, session: Session) -> None:
        for layer in self._whole.model.layers:
            for position, difference in session.findings.layers.get(layer.key, {}).items():
                self._known[layer.outputs[position]] = difference
        for index, difference in session.findings.outputs.items():
            port = self._whole.model.outputs[index].source
            if port is not None and (port not in self._known or self._known[port].within):
                self._known[port] = difference  # a device may fail at the whole model alone
        self._reasons = session.findings.skipped

    def _suspect(self, layer: Layer) -> Suspect:
        """Return a layer, with the reason if not all of its tensors were compared."""
        reason = None
        if any(port.readers and port not in self._known for port in layer.outputs):
            some = any(port in self._known for port in layer.outputs)
            reason = "only some of its outputs were compared" if some else self._reasons.get(layer.key, "not compared")
        return Suspect.of(layer, reason)

    def _first_that_differ(self) -> list[Port]:
        """Return the tensors beyond the tolerance of the first layer that has any."""
        fixed = [layer for layer in self._whole.model.layers if layer.id in self._whole.constant_layers]
        for layer in (*self._layers, *fixed):
            differing = [port for port in layer.outputs if port in self._known and not self._known[port].within]
            if differing:
                return differing
        return []

    def _first_that_fails(self, session: Session, compared: Comparison) -> tuple[list[Port], str]:
        """Return outputs of the first layer at which the other side fails, and how it does; none if it does not."""
        failed_at = session.findings.failed_at
        for layer in self._layers:
            if layer.key in failed_at:
                return list(layer.outputs[:1]), failed_at[layer.key]
        if not compared.failed:
            return [], ""
        error = compared.diagnostics[-1]  # at a layer that the model does not have
        return self._first_missing_output(), f"{error.layer}: {error.message}" if error.layer else error.message

    def _count(self, ports: Sequence[Port]) -> int:
        """Return the length of the beginning that ends with the layer of some tensors."""
        return self._layers.index(ports[0].layer) + 1 if ports[0].layer in self._layers else 0

    def _probe(self, ports: Sequence[Port], verdict: Verdict) -> Probe:
        return Probe.of(ports[0].layer, self._count(ports), verdict)

    def _outputs(self) -> list[Port]:
        ports = [port.source for port in self._whole.model.outputs if port.source is not None]
        return [port for port in ports if port.layer.type != "Parameter"]

    def _first_missing_output(self) -> list[Port]:
        """Return the first output that was not compared; any other one if the tensors of all were."""
        ports = [port for port in self._outputs() if port.layer in self._layers]
        return sorted(ports, key=lambda port: (port in self._known, self._layers.index(port.layer)))[:1]

    def _verdict(self, ports: Sequence[Port]) -> Verdict:
        """Return the verdict on tensors that were compared."""
        port = max(ports, key=lambda port: severity(self._known[port].worst))
        worst = self._known[port].worst
        return Verdict(worst.within, port.any_name, worst)

    # ----- suspects

    def _find_suspects(self, ends: Sequence[Port], session: Session, result: Bisection, *, fails: bool) -> int:
        """Enter the suspects for tensors that differ, or that the other side ``fails`` to compute; return how many runs
        of the other side this took."""
        agreeing = {
            port for port, difference in self._known.items() if difference.within or (fails and port not in ends)
        }
        runs, steps, is_shown = 0, 1, False
        while not is_shown:
            layers, inputs = self._before(ends, agreeing)
            runs += 1
            is_shown = self._shows(ends, agreeing, session)
            unequal = _unequal(inputs, self._known)
            if is_shown or not unequal:
                break
            for _ in range(steps):  # twice as far each time, as each attempt is a run of the other side
                agreeing -= unequal
                unequal = _unequal(self._before(ends, agreeing)[1], self._known)
            steps *= 2
        suspects = [layer for layer in self._layers if layer in layers] or [ends[0].layer]
        result.suspects = [self._suspect(layer) for layer in suspects]
        result.between = [port.any_name for port in inputs]
        return runs

    def _before(self, ends: Sequence[Port], cut: Collection[Port]) -> tuple[Collection[Layer], list[Port]]:
        """Return the layers between a cut and some tensors, and the tensors of the cut that these layers read."""
        constant = self._whole.constant_layers

        def enters(port: Port) -> bool:
            return port not in cut and port.layer.type != "Parameter" and port.layer.id not in constant

        layers, border = trace_back((port.layer for port in ends), enters)
        inputs = {port for port in border if port.layer.id not in constant}
        return layers, [port for layer in self._whole.model.layers for port in layer.outputs if port in inputs]

    def _shows(self, ends: Sequence[Port], agreeing: Collection[Port], session: Session) -> bool:
        """Keep the part between tensors if it differs from the other side; return whether it does.

        ovir runs the part on tensors of the other side, and must compute others than the other side has after it. A
        part that ovir cannot run, because inference needs the values of sizes, computes them itself.
        """
        cuts = [agreeing, {port for port in agreeing if port.element_type.is_real}]
        parts = [self._before(ends, cut)[1] for cut in cuts]
        tensors = session.tensors(self._whole.feeds, {*ends, *(port for inputs in parts for port in inputs)})
        tensors.update(zip(self._whole.model.inputs, self._whole.feeds, strict=True))
        for inputs in parts:
            if not all(port in tensors for port in inputs):  # the other side fails this time
                return False
            try:
                part = self._part(inputs, ends, tensors)
                if part.actual is None or not self._agrees(part):
                    self._reproducer = part
                    return True
                return False
            except OvirError:
                continue
        return False

    def _part(self, inputs: Sequence[Port], ends: Sequence[Port], tensors: Mapping[Port, Array]) -> Reproducer:
        """Return the part between tensors, fed with the other side's; raise OvirError if ovir cannot run it."""
        part = runnable_part(self._whole.model, inputs, ends)
        feeds = [_typed(tensors[port], port) for port in inputs]
        CompiledModel(part, keep_compressed=True)(feeds)
        other = None if self._side.partners is None else self._side.partners.part(inputs, ends)
        fails = any(port not in tensors for port in ends)
        return Reproducer(part, feeds, None if fails else [tensors[port] for port in ends], other)

    def _agrees(self, part: Reproducer) -> bool:
        """Return whether the results of the part agree with the other side."""
        assert part.actual is not None
        side = Recorded(part.model, part.named(part.actual), "the part", self._side.precision)
        sets = [InputSet(_NAME, lambda: list(part.feeds))]
        return Session(part.model, side, self._criterion, None).run(sets, None).within


def _unequal(ports: Sequence[Port], known: dict[Port, TensorDifference]) -> set[Port]:
    """Return the tensors that are not the same on both sides, although they are within the tolerance."""
    return {port for port in ports if port in known and known[port].worst.max_abs}


def _typed(array: Array, port: Port) -> Array:
    """Return an array of the other side in the element type of the model."""
    return array if port.element_type.is_dynamic else array.astype(port.element_type.to_dtype(), copy=False)
