"""Output of ``ovir run``: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ovir.analysis.metrics import top_scores
from ovir.analysis.tensor_stats import as_numbers, likely_classes, stats, type_name
from ovir.cli.output import format_number, say, say_json, say_table
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.diagnostics.wording import plural, readable
from ovir.model import Model
from ovir.runtime.results import Results

if TYPE_CHECKING:
    from ovir.analysis.profile import Profile, RunTimes, Timing
    from ovir.analysis.random_inputs import RandomInput
    from ovir.debugging.watch import Watch
    from ovir.reports.page import Page

IN_FULL = 1024
"""JSON contains the values of tensors of up to this many elements."""
FIRST_VALUES = 6
ROWS = 10
"""Scores of so many rows are shown; JSON has all."""
SLOWEST = 20
"""The table of the profile shows this many layers; JSON contains all of them."""


@dataclass
class Report:
    """The results of one run."""

    model: Model
    feeds: Mapping[int, Array]
    made: Sequence[RandomInput]
    results: Results
    profile: Profile | None
    seconds: float
    """The time of the first run."""
    profiled: float
    """The median time of the runs of the profile."""
    times: RunTimes | None = None
    """The times of the runs that ``--repeat`` asks for."""
    top: int | None = None
    """So many scores of each row are shown."""
    watch: Watch | None = None

    # ----- for people

    def print_tables(self) -> None:
        head = ("type", "shape", ">min", ">max", ">mean", ">nonfinite", "first values")
        outputs = [(port.any_name, self.results[i]) for i, port in enumerate(self.model.outputs)]
        say_table(("output", *head), (_row(name, array) for name, array in outputs))
        for name, array in outputs:
            if self.top is not None:
                _print_scores(name, array, self.top)
            elif classes := likely_classes(array):
                shown = ", ".join(f"{c} ({p:.3f})" for c, p in classes[:10]) + (", ..." if len(classes) > 10 else "")
                say(f"\n{readable(name)}: the most probable class by row: {shown}")
        if self.results.taps:
            say()
            say_table(("tap", *head), (_row(name, array) for name, array in self._tapped()))
        if self.watch is not None:
            from ovir.cli.watch_report import print_watch

            print_watch(self.watch)
        if self.profile is not None:
            self._print_profile(self.profile)
        if self.times is not None:
            from ovir.analysis.profile import WARM_UP

            text = ", ".join(f"{name} {seconds * 1000:.3f}" for name, seconds in self.times.to_dict().items())
            say(f"\n{plural(len(self.times.seconds), 'run')} after {WARM_UP} to warm up, in ms: {text}")

    def _tapped(self) -> Iterator[tuple[str, Array]]:
        for name, arrays in self.results.taps.items():
            for index, array in enumerate(arrays):
                yield (name if len(arrays) == 1 else f"{name}:{index}"), array

    def _print_profile(self, profile: Profile) -> None:
        types, layers = profile.types(), profile.layers()
        runs = f"medians of {plural(profile.runs, 'run')}"
        whole = f"of the run {self.profiled * 1000:.2f} ms"
        say(f"\ntime in layers {profile.seconds * 1000:.2f} ms, {whole} ({runs})\n")
        head = (">calls", ">ms", ">share")
        say_table(("operation", *head), ((t.type, *_times(t, profile)) for t in types))
        say()
        say_table(("layer", "operation", *head), ((t.name, t.type, *_times(t, profile)) for t in layers[:SLOWEST]))
        if len(layers) > SLOWEST:
            say(f"and {plural(len(layers) - SLOWEST, 'faster layer')}")

    # ----- for browsers

    def page(self) -> Page:
        """Return the report for a browser."""
        from ovir.reports.run_page import Ran, run_page

        random = frozenset(self.model.inputs.index(item.port) for item in self.made)
        ran = Ran(self.model, self.feeds, self.results, self.seconds, random, self.profile, self.times, self.watch)
        return run_page(ran, self.top)

    # ----- for programs

    def print_json(self, seed: int | None) -> None:
        random = {self.model.inputs.index(item.port) for item in self.made}
        document: dict[str, Any] = {
            "model": self.model.path,
            "seed": seed,
            "seconds": self.seconds,
            "inputs": [
                {"name": port.any_name, **_tensor(self.feeds[i]), "random": i in random}
                for i, port in enumerate(self.model.inputs)
            ],
            "outputs": [
                {"name": port.any_name, "names": sorted(port.names), **_tensor(self.results[i]), **self._top(i)}
                for i, port in enumerate(self.model.outputs)
            ],
            "taps": {name: [_tensor(a) for a in arrays] for name, arrays in self.results.taps.items()},
            "diagnostics": [d.to_dict() for d in (*self.model.diagnostics, *self.results.diagnostics)],
        }
        if self.profile is not None:
            document["profile"] = {
                "seconds": self.profile.seconds,
                "types": [{"type": t.type, "calls": t.calls, "seconds": t.seconds} for t in self.profile.types()],
                "layers": [vars(t) for t in self.profile.layers()],
            }
        if self.watch is not None:
            document.update(self.watch.to_dict())
        if self.times is not None:
            document["repeat"] = {"runs": list(self.times.seconds), **self.times.to_dict()}
        say_json(document)

    def _top(self, index: int) -> dict[str, Any]:
        rows = top_scores(self.results[index], self.top) if self.top is not None else None
        return {} if rows is None else {"top": [[score._asdict() for score in row] for row in rows]}


def _print_scores(name: str, array: Array, count: int) -> None:
    """Print the highest scores of each row, if the output has rows of scores."""
    rows = top_scores(array, count)
    if rows is None:
        return
    say()
    shown = [(row, s.number, format_number(s.value)) for row, scores in enumerate(rows[:ROWS]) for s in scores]
    say_table((">row", ">class", ">score"), shown, title=f"{readable(name)}: the highest scores by row")
    if len(rows) > ROWS:
        say(f"and {plural(len(rows) - ROWS, 'row')} more; --json has all")


def _row(name: str, array: Array) -> tuple[str, ...]:
    s = stats(array)
    shape = str(PartialShape(array.shape))
    mean = "-" if s.mean is None else f"{s.mean:.6g}"
    return (
        name,
        type_name(array),
        shape,
        format_number(s.minimum),
        format_number(s.maximum),
        mean,
        str(s.nonfinite),
        _first(array),
    )


def _first(array: Array) -> str:
    if array.dtype.kind in "TUSO":
        values = [repr(str(x)) for x in islice(array.flat, FIRST_VALUES)]
    else:
        values = [format_number(x.item()) for x in as_numbers(array.reshape(-1)[:FIRST_VALUES])]
    return " ".join(values) + (" ..." if array.size > FIRST_VALUES else "")


def _times(timing: Timing, profile: Profile) -> tuple[str, str, str]:
    share = timing.seconds / profile.seconds if profile.seconds else 0.0
    return str(timing.calls), f"{timing.seconds * 1000:.3f}", f"{share:.1%}"


def _tensor(array: Array) -> dict[str, Any]:
    s = stats(array)
    entry: dict[str, Any] = {
        "shape": list(array.shape),
        "type": type_name(array),
        "min": s.minimum,
        "max": s.maximum,
        "mean": s.mean,
        "nonfinite": s.nonfinite,
    }
    if array.size <= IN_FULL:
        entry["values"] = array.tolist() if array.dtype.kind in "TUSOb" else as_numbers(array).tolist()
    return entry
