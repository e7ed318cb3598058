"""``ovir check``: report everything that is wrong with IR files, and on which line.

Examples:
  ovir check model.xml
  ovir check models/ --ignore OVIR7 --fail-on warning --sarif diagnostics.sarif
  ovir check models/ --summary
  ovir check model.xml --runtime 2022.3
  ovir check model.xml --shape image=4,3,?,?
  ovir check model.xml --device NPU
  ovir check models/ --workers 8 --summary
  ovir check --untrusted downloads/

exit status: 0 no errors, 1 errors (or what --fail-on says), 2 a file that cannot be read at all

options are also read from [tool.ovir.check] in pyproject.toml or ovir.toml: docs/checking-in-ci.md

what a code means: ovir explain CODE
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import ovir
from ovir.checks.checker import check_here, parse_device
from ovir.checks.options import CheckOptions
from ovir.checks.rules import CODES
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.paths import is_no_model, nothing_checked
from ovir.cli.options.arguments import (
    FileName,
    add_shared,
    add_workers,
    opened_workers,
    options_of,
    output_with,
    parse_shape,
    raise_usage_error,
    refuse_overwriting,
    write_html,
)
from ovir.cli.options.budget import add_budget, budget_of
from ovir.cli.options.check_config import Settings, find_settings, parse_codes
from ovir.cli.options.device import Verdict, add_device
from ovir.cli.options.node_data import add_node_data, write_node_data
from ovir.cli.options.opening import load_extensions
from ovir.cli.terminal.display import has_colors
from ovir.cli.terminal.output import DONE, UNUSABLE, print_message, say, say_json, say_table, status_of
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import NEVER_IGNORED, NOT_IR, UNREADABLE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, counts_text, diagnose
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import escaped, plural
from ovir.system.files import write_text
from ovir.system.progress import counted

Checked = tuple[list[Diagnostic], dict[str, float]]
"""The diagnostics of a file, and the seconds that each stage took."""
Shapes = Mapping[str, PartialShape] | PartialShape
"""The shapes of inputs by name, or the one of the only input."""


def find_files(given: Sequence[str]) -> tuple[list[tuple[str, bool]], list[Diagnostic]]:
    """Return every file to check, each once, with whether it was found in a folder; and the errors of folders."""
    found: dict[str, tuple[str, bool]] = {}
    wrong: list[Diagnostic] = []
    for name in given:
        if os.path.isdir(name):
            inside = _inside(name, wrong)
            if not inside:
                wrong.append(diagnose(UNREADABLE, "the folder holds no .xml file", Place(name)))
            for path in inside:
                found.setdefault(os.path.realpath(path), (path, True))
        else:
            found[os.path.realpath(name)] = (name, False)
    return list(found.values()), wrong


def _inside(folder: str, wrong: list[Diagnostic]) -> list[str]:
    """Return the .xml files in a folder and its subfolders; add a folder that cannot be read to ``wrong``."""

    def refused(error: OSError) -> None:
        wrong.append(diagnose(UNREADABLE, f"cannot read the folder: {error.strerror}", Place(str(error.filename))))

    paths = (os.path.join(root, file) for root, _, files in os.walk(folder, onerror=refused) for file in files)
    return sorted(path for path in paths if path.lower().endswith(".xml") and os.path.isfile(path))


def check_each(
    names: Sequence[str], weights: str | None, options: CheckOptions, workers: dict[str, Any] | None = None
) -> Generator[Checked]:
    """Yield the diagnostics of each file in order.

    ``workers`` are the arguments of ``Tasks`` that say who checks them. Without them, this process does, and the
    processes of a pool join in if that takes long.
    """
    one = partial(_check_file, folder=os.getcwd(), weights=weights, options=options)
    left = iter(names)
    if workers is None:
        start = perf_counter()
        for done, name in enumerate(left, 1):
            yield one(name)
            if perf_counter() - start > _PATIENCE and len(names) - done > 1:
                break
        workers = {}
    remaining = list(left)
    if remaining:
        yield from _check_by_workers(one, remaining, workers)


_PATIENCE = 1.0
"""Seconds after which other processes join in; starting them takes about as long."""


def _check_untrusted(
    names: Sequence[str], arguments: argparse.Namespace, options: CheckOptions, budget: Budget
) -> Generator[Checked]:
    """Yield the diagnostics of each file in order, and the time that its check took."""
    from ovir.checks.untrusted.gate import check_each  # trusted files do not need it

    processes = arguments.workers or os.cpu_count() or 1
    for verdict in check_each(names, arguments.weights, options, budget, processes):
        yield verdict.diagnostics, {"inference": 0.0, "process": verdict.seconds}


def _check_by_workers(
    one: Callable[[str], Checked], names: Sequence[str], workers: dict[str, Any]
) -> Iterator[Checked]:
    from ovir.workers.tasks import Tasks  # importing it takes longer than checking a small file

    with Tasks(one, names, chunk=_chunk(names), **workers) as outcomes:
        for outcome in outcomes:
            if outcome.error is None:
                yield outcome.result
            else:  # such as a worker that died
                yield [replace(found, file=outcome.item) for found in outcome.error.diagnostics], {}


def _chunk(names: Sequence[str]) -> int:
    """Return the number of files of one task: many if they are small, because each task takes time to hand over."""
    sizes = [os.path.getsize(name) if os.path.isfile(name) else 0 for name in names]
    fair = len(names) // 16  # so that no worker has to wait long for others at the end
    return max(1, min(_MOST, fair, _TASK * len(names) // max(1, sum(sizes))))


_TASK = 200_000
"""The bytes of XML of one task."""
_MOST = 32
"""The most files of one task."""


def _check_file(name: str, folder: str, weights: str | None, options: CheckOptions) -> Checked:
    """Check a file, whose name is relative to ``folder``, which need not be the current one of a worker."""
    load_extensions(options.extensions)
    root = "" if folder == os.getcwd() else os.path.join(folder, "")
    times: dict[str, float] = {}
    found = check_here(os.path.join(root, name), weights and os.path.join(root, weights), options, times.__setitem__)
    if root and not os.path.isabs(name):
        found = [replace(d, file=d.file and d.file.removeprefix(root)) for d in found]
    return found, times


_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}


def colored(found: Diagnostic) -> str:
    """Return the diagnostic as a text, with its severity in color on a terminal that supports it."""
    text = str(found)
    if not has_colors(sys.stdout):
        return text
    label = f"{found.severity}[{found.code}]"
    return text.replace(label, f"\x1b[1;{_COLORS[found.severity]}m{label}\x1b[0m", 1)


def annotation(found: Diagnostic) -> str:
    """Return the diagnostic as a command of GitHub Actions, which shows it next to the line.

    Source: workflow commands, in the documentation of GitHub Actions
    """
    kind = {Severity.INFO: "notice"}.get(found.severity, found.severity.value)
    properties = {"file": found.file, "line": found.line, "col": found.column, "title": found.code}
    given = ",".join(f"{key}={_escaped_property(str(value))}" for key, value in properties.items() if value is not None)
    layer = f"{found.layer}: " if found.layer else ""
    hint = f"\nhint: {found.hint}" if found.hint else ""
    return f"::{kind} {given}::{_escaped(f'{layer}{found.message}{hint}')}"


def _escaped(text: str) -> str:
    return escaped(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def say_counts(diagnostics: Sequence[Diagnostic]) -> None:
    """Print the count of each code, and the counts of each file, the worst first."""
    by_code = Counter((found.code, found.severity) for found in diagnostics)
    files = {kind: len({d.file for d in diagnostics if (d.code, d.severity) == kind}) for kind in by_code}
    rows = [
        (code, severity, count, files[code, severity], CODES[code].meaning)
        for (code, severity), count in sorted(by_code.items(), key=lambda item: (-item[1], item[0]))
    ]
    if not rows:
        return
    say_table(("code", "severity", ">found", ">files", "¶meaning"), rows, least=("files",))
    by_file: dict[str, list[Diagnostic]] = {}
    for found in diagnostics:
        by_file.setdefault(found.file or "", []).append(found)
    tables = {file: [sum(d.severity is s for d in found) for s in Severity] for file, found in by_file.items()}
    worst = sorted(tables.items(), key=lambda item: ([-count for count in item[1]], item[0]))
    say_table(("~file", ">errors", ">warnings", ">infos"), [(file, *counts) for file, counts in worst], title="")


def say_times(times: Counter[str]) -> None:
    total = sum(times.values()) or 1.0
    for stage, seconds in times.items():
        print_message(f"{stage:<10} {seconds * 1e3:9.1f} ms  {seconds / total:4.0%}")
    print_message(f"outside inference: {1 - times['inference'] / total:.0%}")


def write_sarif(target: str, diagnostics: Sequence[Diagnostic], untrusted: bool) -> None:
    """Write the SARIF log to a file, or to stdout for ``-``."""
    import json

    from ovir.io.sarif import to_sarif

    log = to_sarif(diagnostics, ovir.__version__, untrusted=untrusted)
    if target == "-":
        say_json(log)
        return
    write_text(target, json.dumps(log, indent=1) + "\n", "write the SARIF log")


def add_to(command: Command) -> None:
    parser.add_argument(
        "models", nargs="+", type=FileName, metavar="MODEL.xml", help="the files to check, or folders of such files"
    )
    model = command.under("model")
    model("--weights FILE", "the weights of the model; for one model only", FileName)
    model("--no-weights", "read only the topology; no .bin is needed", default=None)
    _add_forms(parser)
    _add_choices(parser)
    option = command.under("checks")
    option("--runtime 2022.3", "also report what this OpenVINO release cannot read", _release)
    meaning = "for untrusted files: report everything that could harm a reader as an error; check each in a process"
    command.add(BudgetOptions(meaning))
    option(
        "--run",
        "with --untrusted: also run files without errors on random inputs, within the same limits",
        dest="with_run",
    )
    command.add(DeviceOptions())
    command.add(WorkerOptions(default="one for each core, if it takes long"))
    command.under("outputs")("--profile", "show how long reading, inference and rules took")
    command.shared("extension", "shape", "html")


def _add_forms(parser: argparse.ArgumentParser) -> None:
    option = command.under("outputs")
    form = command.under("outputs", exclusive=True)
    form("--format", "how diagnostics are printed (default: text)", choices=("text", "json", "github"), default="text")
    form("--json", "the same as --format json", action="store_const", const="json", dest="format")
    form("--summary", "print counts by code and by file only", action="store_const", const="summary", dest="format")
    option("--sarif FILE", "also write the diagnostics as SARIF 2.1.0 (- for stdout)", output_with())
    command.add(NodeDataOptions("the severity of the diagnostics of each layer (of one model))")
    option("--quiet, -q", "print only diagnostics that make the exit status 1 or 2, and no closing line")


def _add_choices(parser: argparse.ArgumentParser) -> None:
    option = command.under("checks")
    option("--select CODES", "report only these diagnostics: OVIR402,OVIR1 (all of 1xx)", action="append")
    option("--ignore CODES", "do not report these diagnostics", action="append")
    option(
        "--fail-on",
        "diagnostics of at least this severity make the exit status 1 (default: error)",
        choices=[severity.value for severity in Severity],
    )
    baseline = command.under("checks", exclusive=True)
    baseline("--baseline FILE.json", "do not report the diagnostics recorded in this file", FileName)
    baseline("--write-baseline FILE.json", "record the diagnostics in this file", output_with())
    option("--no-config", "do not look for ovir.toml or pyproject.toml")


def run(options: Options) -> int:
    settings = _settings(arguments)
    budget = budget_of(arguments)
    _refuse_contradictions(arguments)
    verdict = Verdict(arguments, settings)
    failing = list(Severity)[: list(Severity).index(settings.fail_on) + 1]
    output = _Output(arguments, failing)
    options = _check_options(arguments, settings)
    baseline = None
    if settings.baseline is not None and arguments.write_baseline is None:
        from ovir.checks.baseline import Baseline

        refuse_overwriting(arguments, settings.baseline)  # which a configuration file may name
        baseline = Baseline.read(settings.baseline)
    if arguments.untrusted:
        from ovir.checks.untrusted.gate import find_untrusted  # trusted files do not need it

        files, diagnostics = find_untrusted(arguments.models)
    else:
        files, diagnostics = find_files(arguments.models)
    output.say(diagnostics)
    checked: list[str] = []
    known = 0
    names = [name for name, _ in files]
    with (
        _workers(arguments) as workers,
        closing(
            _check_untrusted(names, arguments, options, budget)
            if budget is not None
            else check_each(names, arguments.weights, options, workers)
        ) as results,
    ):
        for (name, in_folder), (found, took) in zip(counted("checking files", files), results, strict=True):
            if in_folder and (is_no_model(found) if arguments.untrusted else any(d.code == NOT_IR.id for d in found)):
                continue  # a folder may hold other XML files
            checked.append(name)
            found = verdict.with_answer(name, found)
            output.times.update(took)
            wanted = [d for d in found if settings.reports(d, name)]
            new = [d for d in wanted if baseline is None or d.code in NEVER_IGNORED or not baseline.takes(d)]
            known += len(wanted) - len(new)
            diagnostics += new
            output.say(new)
    if not checked and files:
        nothing = nothing_checked(len(files), next(filter(os.path.isdir, arguments.models)))
        diagnostics.append(nothing)
        output.say([nothing])
    if arguments.write_baseline is not None:
        return _write_baseline(arguments.write_baseline, diagnostics)
    if arguments.node_data is not None:
        _write_node_data(arguments, diagnostics)
    output.finish(len(checked), diagnostics, known)
    verdict.say(diagnostics)
    if arguments.html is not None:
        from ovir.reports.check_page import check_page

        how = {"weights": arguments.weights, "need_weights": not settings.no_weights}
        write_html(arguments, lambda: check_page(checked, diagnostics, known=known, **how))
    if baseline is not None and (missing := baseline.count_missing(checked, settings.wants_in)):
        print_message(f"{baseline.path}: {plural(missing, 'diagnostic')} no longer found; write the baseline again")
    return status_of(diagnostics, failing)


def _workers(arguments: argparse.Namespace) -> AbstractContextManager[dict[str, Any] | None]:
    """Return a context with the arguments that choose the workers; None in it leaves the choice to ``check_each``."""
    own = arguments.untrusted or (arguments.workers is None and arguments.dask is None)
    return nullcontext() if own else opened_workers(arguments)


class _Output:
    """Prints diagnostics in the form that the arguments request."""

    def __init__(self, arguments: argparse.Namespace, failing: Sequence[Severity]) -> None:
        self.form = "none" if arguments.sarif == "-" or arguments.write_baseline else arguments.format
        self.arguments = arguments
        self.failing = failing
        self.times: Counter[str] = Counter()

    def say(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Print the diagnostics of a file in the forms that do not need the diagnostics of later files."""
        for found in self._loud(diagnostics) if self.form in ("text", "github") else ():
            say(colored(found) if self.form == "text" else annotation(found))

    def finish(self, files: int, diagnostics: Sequence[Diagnostic], known: int) -> None:
        """Print and write the results for all files together."""
        if self.form == "json":
            say_json([found.to_dict() for found in diagnostics])
        if self.form == "summary":
            say_counts(self._loud(diagnostics))
        if self.arguments.sarif is not None:
            write_sarif(self.arguments.sarif, diagnostics, self.arguments.untrusted)
        if self.arguments.profile:
            say_times(self.times)
        if not self.arguments.quiet:
            of_baseline = f"; {known:,} known from the baseline" if known else ""
            print_message(f"{plural(files, 'file')} checked: {counts_text(diagnostics)}{of_baseline}")

    def _loud(self, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        return [d for d in diagnostics if not self.arguments.quiet or d.severity in self.failing]


def _write_baseline(path: str, diagnostics: Sequence[Diagnostic]) -> int:
    """Write all diagnostics; for unusable files, print them instead."""
    from ovir.checks.baseline import write_baseline

    known = [found for found in diagnostics if found.code not in NEVER_IGNORED]
    unusable = [found for found in diagnostics if found.code in NEVER_IGNORED]
    write_baseline(path, known)
    for found in unusable:
        say(colored(found))
    print_message(f"{path}: {plural(len(known), 'diagnostic')} written")
    return UNUSABLE if unusable else DONE


def _write_node_data(arguments: argparse.Namespace, diagnostics: Sequence[Diagnostic]) -> None:
    """Write the severities of layers, whose topology is read once more: a check, which a process may do, keeps none."""
    from ovir.checks.recovering import read_recovering
    from ovir.view.overlays import of_diagnostics

    try:
        model = read_recovering(arguments.models[0], need_weights=False).model
    except ReadError:
        print_message(f"{arguments.node_data}: not written, because the model cannot be read")
        return
    write_node_data(arguments.node_data, of_diagnostics(model, diagnostics), model)


# --------------------------------------------------------------------------- arguments


def _settings(arguments: argparse.Namespace) -> Settings:
    """Return the settings of the nearest configuration file, overridden by the options of the command line."""
    ignored = arguments.no_config or arguments.untrusted  # the nearest file may be untrusted
    settings = Settings() if ignored else find_settings(os.curdir)
    given: dict[str, Any] = {
        "select": None if arguments.select is None else _codes("--select", arguments.select),
        "ignore": None if arguments.ignore is None else _codes("--ignore", arguments.ignore),
        "fail_on": None if arguments.fail_on is None else Severity(arguments.fail_on),
        "no_weights": False if arguments.weights is not None else arguments.no_weights,
        "runtime": arguments.runtime,
        "device": arguments.device,
        "baseline": arguments.baseline,
    }
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _check_options(arguments: argparse.Namespace, settings: Settings) -> CheckOptions:
    return CheckOptions(
        need_weights=not settings.no_weights,
        shapes=_shapes(arguments.shape),
        runtime=settings.runtime,
        device=settings.device and parse_device(settings.device),
        skip=tuple(code for code in CODES if not settings.wants(code)),
        extensions=tuple(os.path.abspath(path) for path in arguments.extension),
    )


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    for option in ("dask", "node_data", "html"):
        if arguments.untrusted and getattr(arguments, option) is not None:
            raise_usage_error(f"--{option.replace('_', '-')} and --untrusted exclude each other")
    if arguments.untrusted and arguments.shape:
        raise_usage_error("--shape and --untrusted exclude each other")
    if arguments.untrusted and arguments.ask:
        raise_usage_error("--ask and --untrusted exclude each other: the device would compile the model")
    for option in ("weights", "shape", "node_data"):
        if getattr(arguments, option) and (len(arguments.models) > 1 or os.path.isdir(arguments.models[0])):
            raise_usage_error(f"--{option.replace('_', '-')} is for one model, and several are given")
    if arguments.weights is not None and arguments.no_weights:
        raise_usage_error("--weights and --no-weights exclude each other")
    if arguments.ask and arguments.shape:
        raise_usage_error("--ask and --shape exclude each other: a device is asked about the shapes of the file")
    if arguments.sarif == "-" and arguments.format != "text":
        raise_usage_error("--sarif - would print SARIF among other output: give it a file")


def _shapes(texts: Sequence[str]) -> Shapes | None:
    """Return the shapes that ``--shape`` gives, before the model is read; None without any."""
    found: dict[str, PartialShape] = {}
    for text in texts:
        name, _, shape = text.rpartition("=")  # names may contain "=", shapes do not
        if name in found or (found and "" in (name, *found)):
            raise_usage_error(f"--shape {text}: expected one shape for each input, as NAME={shape}")
        found[name] = parse_shape(text, shape)
    return found.get("", found) if found else None


def _release(text: str) -> tuple[int, int]:
    """Convert the text of ``--runtime``."""
    from ovir.lowering.releases import parse_release

    try:
        return parse_release(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.diagnostic.message) from None


def _codes(option: str, texts: Sequence[str]) -> tuple[str, ...]:
    try:
        return parse_codes(texts)
    except ValueError as error:
        raise_usage_error(f"{option} {error}")
