"""`ovir.fuzz`: finds random models on which a device or a compiler differs from ovir."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Any

from ovir.core.arrays import Array
from ovir.core.reading import parse_json, read_text
from ovir.debugging.candidates import counted_layers
from ovir.debugging.engines.process import UnsupportedError
from ovir.debugging.layerwise_run import ENDS
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, OvirError, require_counts, require_seconds
from ovir.diagnostics.wording import reason_of
from ovir.fuzzing.device_map import STATUS_OF_FAULT, Cell, DeviceMap, places_of
from ovir.fuzzing.findings import Finding, Reduced, alike, operations_of, reduce_fault, signature_of
from ovir.fuzzing.folders import Origin, report_of, save_finding
from ovir.fuzzing.judging import Fault, Judge
from ovir.fuzzing.models import MAP, NAMES, ROUND, Choice
from ovir.fuzzing.targets import Compiler, Target, old_release, open_target, precise
from ovir.lowering.releases import release_text
from ovir.model import Model
from ovir.system.files import write_json, write_text

_NOT_AGAIN = "not seen again in a new process: an earlier model may have harmed the process before"
STATE = "fuzz.json"
"""The file of a folder of findings with the state from which a later call goes on."""
TABLE = "map.csv"
"""The file with the map as a table."""
_TIMEOUT = 20.0
_ROUNDS = 4
"""The most models that are tried for each that a cell is to have; ovir refuses some."""
_MOST_IN_VAIN = 1_000
"""The most models of the wanted operation versions in a row that do not have the wanted types."""
_REPEATED = 5
"""About one of so many models also runs in new requests and after new compilations."""


@dataclass
class Fuzzing:
    """The result of fuzzing: true if models were compared, and nothing was found."""

    findings: list[Finding] = field(default_factory=list)
    """The findings, each of which represents all faults of one signature."""
    description: str = ""
    """The other side of the comparisons."""
    models: int = 0
    """The number of models that were made."""
    compared: int = 0
    """The number of them that both sides ran, or the other side failed to."""
    refused: int = 0
    """The number that ovir does not run; they are not compared."""
    unsupported: Counter[str] = field(default_factory=Counter)
    """The number of models that the other side does not claim to support, by operation version."""
    known: Counter[str] = field(default_factory=Counter)
    """The number of faults put down to known divergences, or to signatures in the file of known ones."""
    map: DeviceMap = field(default_factory=DeviceMap)
    """The cells that were tried, and those that could have been, by operation version and element type."""
    unreached: list[str] = field(default_factory=list)
    """The operation versions that were wanted and in no model that was compared."""
    seconds: float = 0.0
    """The time that it took, with that of the earlier calls."""
    ovir_seconds: float = 0.0
    """The time in which workers made models, ran them in ovir and compared results."""
    target_seconds: float = 0.0
    """The time in which they waited for the other side."""
    next: int = 0
    """The number of the next model."""

    def __bool__(self) -> bool:
        return self.compared > 0 and not self.findings

    @property
    def unsupported_models(self) -> int:
        """Return the number of models that the other side does not claim to support."""
        return self.models - self.compared - self.refused

    @property
    def rate(self) -> float:
        """Return the number of models in a second."""
        return self.models / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        findings = [finding.to_dict() for finding in self.findings]
        return {**vars(self), "findings": findings, "map": self.map.to_dict()}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Fuzzing:
        """Return the result that ``to_dict`` has described."""
        found = cls(**content)
        found.findings = [Finding(**finding) for finding in content["findings"]]
        found.unsupported, found.known = Counter(found.unsupported), Counter(found.known)
        found.map = DeviceMap.of(content["map"])
        return found


FuzzProgress = Callable[[Fuzzing, float], None]
"""Called a few times a second with the result so far, and the share of the time or of the models that is done."""


def fuzz(
    against: str | Compiler = "openvino:CPU",
    *,
    config: Mapping[str, str] | None = None,
    time: float | None = None,
    models: int | None = None,
    map: int | None = None,
    seed: int = 0,
    ops: str | None = None,
    types: Collection[str] = (),
    workers: int = 1,
    timeout: float = _TIMEOUT,
    output: str | os.PathLike[str] | None = None,
    known: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: FuzzProgress | None = None,
) -> Fuzzing:
    """Compare random models with a device or a compiler, and return the faults that were found.

    Each fault is reduced to a small model. Faults of one signature, which is their kind with the operations and the
    message without numbers, are one finding. The result is true if models were compared, and there is none.

    Args:
        against: A device of OpenVINO (``openvino:CPU``); the CPU of an older release that another Python has
            (``runtime:2023.3=/usr/bin/python3.9``), for which models are lowered; a function in a Python file
            (``python:compiler.py:run``), which runs in a process of its own as devices do; or a function itself. A
            function is called with the path of an .xml and a list of arrays, and returns the arrays of the outputs.
            NotImplementedError says that it does not support a model.
        config: Properties of the device. By default OpenVINO's CPU computes in f32.
        time: The seconds in which models are made. Without ``time``, ``models`` and ``map``, 60.
        models: The number of models to make.
        map: The number of models that each operation version is to have with each element type that it takes. They are
            made evenly, in place of any models, until all have as many.
        seed: The number of the first model; each number stands for one model. With ``map``, the number of the first
            round through all of them.
        ops: A regular expression for operation versions such as ``Gather-8``; models then have one such operation each.
        types: The element types of inputs and constants, apart from those of indices and masks; by default all. A
            search ends after 1,000 models in a row that have others.
        workers: The number of models in work at the same time; a function must then be able to run in several threads.
        timeout: The seconds that one request to a device may take before it counts as a hang.
        output: A folder to which each finding is saved as a folder of its own.
        known: A file with a signature on each line, which are not findings.
        resume: Whether to go on where an earlier call with this folder has ended.
        progress: Called with the result so far.

    Raises InputError for arguments that do not fit. KeyboardInterrupt leaves complete findings in the folder.
    """
    require_counts(models=models, workers=workers, map=map)
    require_counts(0, seed=seed)
    require_seconds(time=time, timeout=timeout)
    choice = Choice(ops, [types] if isinstance(types, str) else types)
    session = _Session(against, config, choice, timeout, None if output is None else Path(output), known)
    session.start(seed, map, resume=resume)
    limit = 60.0 if time is None and models is None and map is None else time
    return session.run(limit, models, workers, progress)


class _Session:
    """One call, whose workers are threads that share its result."""

    def __init__(
        self,
        against: str | Compiler,
        config: Mapping[str, str] | None,
        choice: Choice,
        timeout: float,
        folder: Path | None,
        known: str | os.PathLike[str] | None,
    ) -> None:
        self._choice = choice
        self._open: Callable[[], Target] = partial(open_target, against, config, timeout)
        with closing(self._open()) as target:
            description = target.description  # which starts it, so that a device is known to be there
        used = {} if callable(against) else precise(against) if config is None else config
        self._origin = Origin(against, description, used, timeout)
        is_openvino = str(against).startswith(("openvino", "runtime:"))
        self._device = description if is_openvino else ""
        self._release = old_release(against)
        self._folder = folder
        self._known = set() if known is None else read_known(known)
        self._reduced: list[Reduced] = []
        """The faults that were reduced."""
        self._lock = Lock()
        self._stop = Event()
        self._running: set[int] = set()
        self._numbers: Iterator[int] = iter(())
        self._in_vain = 0
        """The numbers since the last model that was wanted."""
        self._cells: dict[int, Cell] = {}
        """The cells that are to have ``_cases`` models each, by the numbers of their first models."""
        self._cases = 0
        self.found = Fuzzing(description=description)

    def start(self, seed: int, cases: int | None, *, resume: bool) -> None:
        """Begin with an empty result, or with that of the folder; ``cases`` models are wanted in each cell."""
        self.found.next = seed if cases is None else MAP + seed * ROUND
        self._open_folder(resume=resume)
        if cases is None:
            self._numbers = count(self.found.next)
        else:
            self._cells = {number: self.found.map.cell(*place) for place, number in self._choice.places().items()}
            self._cases, self._numbers = cases, self._numbers_of_cells(cases)

    def _numbers_of_cells(self, cases: int) -> Iterator[int]:
        """Yield numbers of models, one for each cell that has not enough of them, then again for those left."""
        begin = self.found.next
        first = max(begin - MAP, 0) // ROUND
        for round_ in range(first, first + cases * _ROUNDS):
            for number, cell in self._cells.items():
                if cell.counts.total() < cases and number + round_ * ROUND >= begin:
                    yield number + round_ * ROUND

    def _open_folder(self, *, resume: bool) -> None:
        if self._folder is None:
            if resume:
                raise InputError.usage("needs the folder of an earlier call", option="resume")
            return
        if self._folder.exists() and not self._folder.is_dir():
            raise InputError.usage(f"{self._folder} is a file, but findings need a folder")
        state = self._folder / STATE
        if resume and state.exists():
            try:
                self.found = Fuzzing.of(parse_json(read_text(state)))
            except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
                message = f"the state of the search cannot be read: {error}"
                raise InputError(diagnose(BAD_INPUT, message, Place(str(state)))) from None
        elif state.exists():
            hint = "resume (--resume) goes on with it; another folder begins anew"
            raise InputError.usage(f"{self._folder} has the findings of an earlier search", hint=hint)
        self._folder.mkdir(parents=True, exist_ok=True)

    def run(self, seconds: float | None, models: int | None, workers: int, progress: FuzzProgress | None) -> Fuzzing:
        """Make models until the time is over, or as many as are wanted."""
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait  # which slow down `import ovir`

        before, start = self.found.seconds, monotonic()
        wanted = None if models is None else self.found.models + models
        first = self.found.models
        with ThreadPoolExecutor(workers, "ovir-fuzz") as pool:
            running = {pool.submit(self._work, wanted) for _ in range(workers)}
            try:
                while running:
                    ended, running = wait(running, 0.2, FIRST_EXCEPTION)
                    for worker in ended:
                        worker.result()
                    passed = monotonic() - start
                    self.found.seconds = before + passed
                    if seconds is not None and passed >= seconds:
                        self._stop.set()
                    if progress is not None:
                        done = (self.found.models - first) / models if models else self._share_of_cells()
                        progress(self.found, min(max(done, passed / seconds if seconds is not None else 0.0), 1.0))
            finally:
                self._stop.set()
                pool.shutdown()
                for version in self.found.map:
                    for element_type in self._choice.types_of(version):
                        self.found.map.cell(version, element_type)
                self._save()
        return self.found

    def _share_of_cells(self) -> float:
        """Return the share of the wanted models of cells that were tried."""
        with self._lock:
            tried = sum(min(cell.counts.total(), self._cases) for cell in self._cells.values())
        return tried / (self._cases * len(self._cells)) if self._cells else 0.0

    # ----- a worker

    def _work(self, wanted: int | None) -> None:
        with closing(self._open()) as target:
            judge = Judge(target, self._device)
            share = len(self._choice.versions) / len(NAMES)  # of numbers that stand for a wanted version
            while not self._stop.is_set():
                with self._lock:
                    if wanted is not None and self.found.models + len(self._running) >= wanted:
                        return  # the models that others try are enough; if one is none, its worker tries another
                    number = next(self._numbers, None)
                    if number is None or self._in_vain * share > _MOST_IN_VAIN:
                        return
                    self._running.add(number)
                self._try(number, judge)
                with self._lock:
                    self._running.discard(number)
                    self.found.next = min(self._running, default=max(self.found.next, number + 1))

    def _try(self, number: int, judge: Judge) -> None:
        start, waited = monotonic(), judge.seconds["target"]
        try:
            made = self._choice.make(number)
            if made is not None and self._release is not None:
                made[0].lower(release_text(self._release))
        except OvirError:
            self._count(refused=1)
            return
        if made is None:
            with self._lock:
                self._in_vain += 1
            return
        model, inputs = made
        try:
            fault = judge.fault(model, inputs, anew=_is_repeated(number))
        except UnsupportedError:
            self._count()
            with self._lock:
                self.found.unsupported.update(operations_of(model))
                self.found.map.record(self._subject(number, model), "not supported")
            return
        except InputError:
            raise
        except OvirError:
            self._count(refused=1)
            return
        self._count(compared=1)
        with self._lock:
            if fault is None:
                self.found.map.record(places_of(model.walk()), "agrees")
            self.found.target_seconds += judge.seconds["target"] - waited
            self.found.ovir_seconds += monotonic() - start - (judge.seconds["target"] - waited)
        if fault is not None:
            self._report(number, model, inputs, fault, judge)

    def _subject(self, number: int, model: Model) -> list[tuple[str, str]]:
        """Return the cells of a model that was made for an operation version; none for a graph, of which nobody knows
        which layer is meant."""
        return [place for place in places_of(model.layers) if place[0] == self._choice.version(number)]

    def _count(self, *, refused: int = 0, compared: int = 0) -> None:
        with self._lock:
            self._in_vain = 0
            self.found.models += 1
            self.found.refused += refused
            self.found.compared += compared

    # ----- findings

    def _report(self, number: int, model: Model, inputs: list[Array], fault: Fault, judge: Judge) -> None:
        """Reduce a fault, and join it with those of its signature."""
        if fault.known is not None:
            with self._lock:
                self.found.known[fault.known] += 1
                self.found.map.record(self._subject(number, model), "known")
            return
        reduced = self._reduced_before(model, fault) or self._reduce(model, inputs, fault, judge)
        if reduced is None:
            with self._lock:
                self.found.known[_NOT_AGAIN] += 1
            return
        signature, operations = signature_of(reduced.model, reduced.fault), operations_of(reduced.model)
        places = [place for place in self._subject(number, model) if place[0] in operations or not operations]
        places = places or places_of(reduced.model.layers)
        with self._lock:
            if signature in self._known:
                self.found.known[signature] += 1
                self.found.map.record(places, "known")
                return
            if fault.kind in STATUS_OF_FAULT:
                self.found.map.record(places, STATUS_OF_FAULT[fault.kind], signature)
            for finding in self.found.findings:
                if finding.signature == signature:
                    finding.count += 1
                    return
            finding = Finding(
                signature,
                fault.kind,
                operations,
                reduced.fault.message,
                number,
                layers=len(counted_layers(reduced.model)),
                seen=reduced.seen,
                runs=reduced.runs,
                unsteady=reduced.seen < reduced.runs,
            )
            finding.report = report_of(finding, reduced, self._origin)
            if self._folder is not None:
                words = re.sub(r"[^A-Za-z0-9]+", "-", " ".join([finding.kind, *finding.operations[:3]])).strip("-")
                finding.folder = f"{words}-{hashlib.sha256(finding.signature.encode()).hexdigest()[:6]}"
                save_finding(self._folder / finding.folder, finding, reduced, self._origin)
            self.found.findings.append(finding)
            self._save()

    def _reduced_before(self, model: Model, fault: Fault) -> Reduced | None:
        """Return an earlier fault like this one if the model has all operations that show it."""
        own = set(operations_of(model))
        known = ((item, operations_of(item.model)) for item in list(self._reduced) if alike(item.fault, fault))
        return next((item for item, operations in known if operations and own.issuperset(operations)), None)

    def _reduce(self, model: Model, inputs: list[Array], fault: Fault, judge: Judge) -> Reduced | None:
        """Return the smallest model that shows the fault again in a new process, in any of several runs; None if not
        even the whole one does.

        A quick reduction is tried first.
        """
        for excuses_rounding in (False, True):
            judge.excuses_rounding = excuses_rounding
            try:
                reduced = reduce_fault(model, inputs, fault, judge)
            finally:
                judge.excuses_rounding = True
            seen, runs = judge.appearances(reduced.model, reduced.inputs, reduced.fault)
            if seen:
                break
            seen, runs = judge.appearances(model, inputs, fault)
            if not seen:
                return None
        else:
            reduced = Reduced(model, inputs, fault)
        reduced = replace(reduced, seen=seen, runs=runs)
        self._reduced.append(reduced)
        return reduced

    def _save(self) -> None:
        """Write the state that a later call needs to go on."""
        tried = {version for version, _ in self.found.map.tried()}
        self.found.unreached = [x for x in self._choice.versions if x not in tried and x.split("-")[0] not in ENDS]
        if self._folder is not None:
            write_json(self._folder / STATE, self.found.to_dict(), "write the state")
            write_text(self._folder / TABLE, self.found.map.csv(), "write the map")


def _is_repeated(number: int) -> bool:
    """Return whether a model is repeated; its operation, which follows from remainders of the number, has no say."""
    return hashlib.sha256(b"%d" % number).digest()[0] % _REPEATED == 0


# --------------------------------------------------------------------------- known signatures


def read_known(path: str | os.PathLike[str]) -> set[str]:
    """Return the signatures in a file, one a line; lines that begin with # are comments."""
    try:
        lines = read_text(Path(path)).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.usage(f"{os.fspath(path)}: cannot be read: {reason_of(error)}", option="known") from None
    return {text for line in lines if (text := line.strip()) and not text.startswith("#")}


def write_known(path: str | os.PathLike[str], found: Fuzzing) -> None:
    """Add the signatures of findings to a file, which need not exist, behind what it holds."""
    before, text = (read_known(path), read_text(path)) if Path(path).exists() else (set[str](), "")
    new = sorted({finding.signature for finding in found.findings} - before)
    lines = [*text.splitlines(), *new]
    write_text(path, "".join(f"{line}\n" for line in lines), "write the known findings")
