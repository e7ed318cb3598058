"""Models lowered for old releases of OpenVINO, and run by these releases.

    python -m benchmarks.old_releases [FOLDER] [--releases 2022.1,2022.3] [--only REGEX] [--verbose] [--write]
    python -m benchmarks.old_releases FOLDER --cases [...]

FOLDER holds ``<name>/model.xml``, ``<name>/inputs.npz`` and ``<name>/expected.npz``, whose tensors have the names of
inputs and the order of outputs; with ``--cases``, it holds cases of single operations,
``cases/<operation>-<opset>/<id>/``, of which those run that are newer than the release. Each model is lowered
for each release, saved, and run there on the same inputs. Prints a table, and how many of those that can be
expressed agree with the expected outputs; ``--verbose`` prints why the others do not.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import ovir
from benchmarks.common import write_figures
from benchmarks.releases import PACKAGES, NoRuntimeError, OldRuntime, RefusedError, array_of, steps_of
from ovir.core.arrays import Array
from ovir.lowering.releases import IR_VERSION_11, newest_opset, parse_release

MODELS = Path(__file__).parents[2] / "shared" / "models"
RELEASES = "2021.4,2022.1,2022.3,2023.3,2024.6"

Step = tuple[dict[str, Array], dict[str, Array]]
"""Inputs and expected outputs of a run."""

RUNS_AS_IT_IS, RUNS_REWRITTEN, NOT_EXPRESSIBLE, FAILS = "as it is", "rewritten", "refused", "fails"


@dataclass(frozen=True)
class Case:
    """A model with inputs and expected outputs, which may have several steps."""

    name: str
    path: Path
    runs: tuple[tuple[Path, Path], ...]
    rtol: float
    atol: float
    scaled: bool
    """Whether the absolute tolerance is a part of the largest number."""


@dataclass(frozen=True)
class Outcome:
    case: str
    release: str
    verdict: str
    note: str = ""


@dataclass
class Table:
    outcomes: list[Outcome] = field(default_factory=list)

    def lines(self, releases: Sequence[str]) -> Iterator[str]:
        """Yield the rows of a table in Markdown: models by releases."""
        yield f"| model | {' | '.join(releases)} |"
        yield f"|---|{'---|' * len(releases)}"
        cells = {(outcome.case, outcome.release): outcome.verdict for outcome in self.outcomes}
        for name in dict.fromkeys(outcome.case for outcome in self.outcomes):
            yield f"| `{name}` | {' | '.join(cells.get((name, release), '') for release in releases)} |"

    def totals(self, release: str) -> str:
        verdicts = [outcome.verdict for outcome in self.outcomes if outcome.release == release]
        refused, failed = verdicts.count(NOT_EXPRESSIBLE), verdicts.count(FAILS)
        expressible = len(verdicts) - refused
        share = f"{(expressible - failed) / expressible:.1%}" if expressible else "none"
        return f"{release}: {expressible - failed} of {expressible} agree ({share}); {refused} are refused"


def models(folder: Path) -> list[Case]:
    """Return the models of a folder; the second set of inputs follows the first one in the same request."""
    cases = []
    for path in sorted(folder.glob("*/model.xml")):
        sets = [(path.with_name(f"inputs{n}.npz"), path.with_name(f"expected{n}.npz")) for n in ("", "2")]
        runs = tuple(pair for pair in sets if all(file.exists() for file in pair))
        cases.append(Case(path.parent.name, path, runs, 2e-3, 1e-3, scaled=True))
    return cases


def operation_cases(folder: Path, newer_than: int) -> list[Case]:
    """Return the cases that run an operation version of an opset above a number."""
    cases = []
    for path in sorted(folder.glob("cases/*/*/model.xml")):
        opset = int(path.parent.parent.name.rpartition("-opset")[2])
        if opset <= newer_than or not (path.parent / "expected.npz").exists():
            continue
        facts = json.loads((path.parent / "case.json").read_text())
        if facts["kind"] == "run" and not facts.get("accepted_negative"):
            name = f"{path.parent.parent.name}/{path.parent.name}"
            files = (path.with_name("inputs.npz"), path.with_name("expected.npz"))
            cases.append(Case(name, path, (files,), facts["rtol"], facts["atol"], scaled=False))
    return cases


# --------------------------------------------------------------------------- one case


def outcome_of(case: Case, runtime: OldRuntime, folder: Path) -> Outcome:
    """Lower a model for a release, and run it there."""

    def outcome(verdict: str, note: str = "") -> Outcome:
        return Outcome(case.name, runtime.release, verdict, " ".join(note.split()))

    given = [pair for inputs, expected in case.runs for pair in zip(_fed(inputs), steps_of(expected), strict=True)]
    model = ovir.read_model(case.path)
    original = model.clone()
    before = [(layer.type, layer.version) for layer in model.walk()]
    version = 11 if parse_release(runtime.release) >= IR_VERSION_11 else 10
    try:
        if version == 10:  # whose readers know no unknown sizes
            given = _of_first_shapes(given)
            model.reshape({port: array_of(given[0][0], port).shape for port in model.inputs})
        model.lower(runtime.release)
        ovir.save_model(model, folder / "lowered.xml", version=version)
    except ovir.OvirError as error:
        return outcome(NOT_EXPRESSIBLE, str(error))
    try:
        results = runtime.run(folder / "lowered.xml", model, [inputs for inputs, _ in given])
    except RefusedError as error:
        return outcome(FAILS, str(error))
    expected = [[_wanted(step, position, model) for position in range(len(model.outputs))] for _, step in given]
    loose = version == 10
    if difference := _first_difference(results, expected, case, loose=loose):
        # OpenVINO may have rounded to other codes of quantized models than older releases and ovir do.
        request = ovir.compile_model(original).create_infer_request()
        ours = [list(request.infer(inputs).values()) for inputs, _ in given]
        if _first_difference(results, ours, case, loose=loose):
            return outcome(FAILS, f"differs: {difference}")
    same = before == [(layer.type, layer.version) for layer in model.walk()]
    return outcome(RUNS_AS_IT_IS if same else RUNS_REWRITTEN)


def _of_first_shapes(given: list[Step]) -> list[Step]:
    """Return the steps whose inputs have the shapes of the first one."""
    shapes = [{name: array.shape for name, array in inputs.items()} for inputs, _ in given]
    return [step for step, shape in zip(given, shapes, strict=True) if shape == shapes[0]]


def _first_difference(
    results: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array | None]], case: Case, *, loose: bool
) -> str:
    for step, (found, wanted) in enumerate(zip(results, expected, strict=True)):
        for position, (array, other) in enumerate(zip(found, wanted, strict=True)):
            if other is not None and (difference := _difference(array, other, case, loose=loose)):
                return f"step {step}, output {position}: {difference}"
    return ""


def _fed(path: Path) -> list[dict[str, Array]]:
    return (path.exists() and steps_of(path)) or [{}]


def _wanted(expected: Mapping[str, Array], position: int, model: ovir.Model) -> Array | None:
    """Return the expected output at a position: by the name ``out<position>``, by a name of the output, or in order."""
    port = model.outputs[position]
    for name in (f"out{position}", port.layer.name, *port.names):
        if name in expected:
            return expected[name]
    in_order = list(expected.values())
    by_number = any(re.fullmatch(r"out\d+", name) for name in expected)  # an output without a number is not compared
    return None if by_number else in_order[position]


def _difference(found: Array, wanted: Array, case: Case, *, loose: bool) -> str:
    """Return in what two arrays differ, nothing if they agree; ``loose`` compares no element types, which 2021.4
    chooses itself."""
    if loose and not wanted.shape:  # the Inference Engine has no scalars
        found = found.reshape(()) if found.size == 1 else found
    if found.shape != wanted.shape:
        return f"shape {list(found.shape)} instead of {list(wanted.shape)}"
    if wanted.dtype.kind in "USOT":
        return "" if list(map(str, found.flat)) == list(map(str, wanted.flat)) else "other strings"
    if not loose and found.dtype != wanted.dtype:
        return f"element type {found.dtype} instead of {wanted.dtype}"
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1e-3)) if case.scaled else 1.0
    close = np.isclose(a, b, rtol=case.rtol, atol=case.atol * scale, equal_nan=True)
    if close.all():
        return ""
    worst = np.abs(a - b)[~close]
    return f"{worst.size} of {close.size} numbers, by up to {np.nanmax(worst) if worst.size else np.nan:.3g}"


# --------------------------------------------------------------------------- the command


def measure(releases: Sequence[str], cases_for: Callable[[str], list[Case]], *, verbose: bool) -> Table:
    table = Table()
    for release in releases:
        with tempfile.TemporaryDirectory() as folder, OldRuntime(release) as runtime:
            for case in cases_for(release):
                outcome = outcome_of(case, runtime, Path(folder))
                table.outcomes.append(outcome)
                if verbose and outcome.note:
                    print(f"{release}  {outcome.case}  {outcome.verdict}: {outcome.note[:400]}", flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=MODELS)
    parser.add_argument("--releases", default=RELEASES, help=f"of {', '.join(PACKAGES)}; default: {RELEASES}")
    parser.add_argument("--only", default="", metavar="REGEX", help="the cases whose names match")
    parser.add_argument("--cases", action="store_true", help="FOLDER holds cases of operations")
    parser.add_argument("--verbose", action="store_true", help="print why models are refused or fail")
    parser.add_argument("--write", action="store_true", help="write the table into docs/old-releases.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    releases = arguments.releases.split(",")

    def cases_for(release: str) -> list[Case]:
        opset = newest_opset(parse_release(release))
        found = operation_cases(arguments.folder, opset) if arguments.cases else models(arguments.folder)
        return [case for case in found if re.search(arguments.only, case.name)]

    try:
        table = measure(releases, cases_for, verbose=arguments.verbose)
    except NoRuntimeError as error:
        raise SystemExit(str(error)) from None
    lines = list(table.lines(releases))
    print(*([] if arguments.cases else lines), *map(table.totals, releases), sep="\n")
    if arguments.write:
        write_figures("models by releases", lines, "old-releases.md")


if __name__ == "__main__":
    main()
