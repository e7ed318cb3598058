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
  ovir check model.xml --fix --diff

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
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import ovir
from ovir.checks.checker import check_here, counts_by_code, counts_by_file, parse_device
from ovir.checks.options import CheckOptions
from ovir.checks.recovering import read_recovering
from ovir.checks.rules import CODES
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.paths import is_no_model, nothing_checked
from ovir.cli.options.budget import BudgetOptions
from ovir.cli.options.check_config import Settings, find_settings, parse_codes
from ovir.cli.options.command import Command, Group, Options
from ovir.cli.options.device import REASONS, TargetDevice
from ovir.cli.options.model import STDIN, parse_shape, source_of
from ovir.cli.options.node_data import NodeDataOptions
from ovir.cli.options.opening import load_extensions
from ovir.cli.options.values import FileName, OutputFile, output_with, raise_usage_error
from ovir.cli.options.workers import WorkerOptions
from ovir.cli.terminal.display import has_colors
from ovir.cli.terminal.output import DONE, UNUSABLE, print_message, say, say_json, say_table, status_of
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import FOREIGN_WEIGHTS, NEVER_IGNORED, NO_WEIGHTS, NOT_IR, UNREADABLE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, counts_text, diagnose
from ovir.diagnostics.errors import InputError, ModelError, ReadError, WriteError
from ovir.diagnostics.wording import escaped, plural, reason_of
from ovir.lowering.releases import parse_release
from ovir.system.files import write_json
from ovir.system.progress import counted

Checked = tuple[list[Diagnostic], dict[str, float]]
"""The diagnostics of a file, and the seconds that each stage took."""
Shapes = Mapping[str, PartialShape] | PartialShape
"""The shapes of inputs by name, or the one of the only input."""


def find_files(names: Sequence[str]) -> tuple[list[tuple[str, bool]], list[Diagnostic]]:
    """Return every file to check, each once, with whether it was found in a folder; and the errors of folders."""
    files: dict[str, tuple[str, bool]] = {}
    wrong: list[Diagnostic] = []
    for name in names:
        if os.path.isdir(name):
            inside = _inside(name, wrong)
            if not inside:
                wrong.append(diagnose(UNREADABLE, "the folder holds no .xml file", Place(name)))
            for path in inside:
                files.setdefault(os.path.realpath(path), (path, True))
        else:
            files[os.path.realpath(name)] = (name, False)
    return list(files.values()), wrong


def _inside(folder: str, wrong: list[Diagnostic]) -> list[str]:
    """Return the .xml files in a folder and its subfolders; add a folder that cannot be read to ``wrong``."""

    def refused(error: OSError) -> None:
        wrong.append(diagnose(UNREADABLE, f"cannot read the folder: {reason_of(error)}", Place(str(error.filename))))

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
    names: Sequence[str], weights: str | None, options: CheckOptions, budget: Budget, workers: int | None
) -> Generator[Checked]:
    """Yield the diagnostics of each file in order, and the time that its check took."""
    from ovir.checks.untrusted.gate import check_each  # trusted files do not need it

    for verdict in check_each(names, weights, options, budget, workers or os.cpu_count() or 1):
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
                yield [replace(d, file=outcome.item) for d in outcome.error.diagnostics], {}


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
    source = source_of(os.path.join(root, name))
    diagnostics = check_here(source, weights and os.path.join(root, weights), options, times.__setitem__)
    if name == STDIN:
        return [replace(d, file=STDIN) for d in diagnostics], times
    if root and not os.path.isabs(name):
        diagnostics = [replace(d, file=d.file and d.file.removeprefix(root)) for d in diagnostics]
    return diagnostics, times


_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}


def colored(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as a text, with its severity in color on a terminal that supports it."""
    text = str(diagnostic)
    if not has_colors(sys.stdout):
        return text
    label = f"{diagnostic.severity}[{diagnostic.code}]"
    return text.replace(label, f"\x1b[1;{_COLORS[diagnostic.severity]}m{label}\x1b[0m", 1)


def annotation(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as a command of GitHub Actions, which shows it next to the line.

    Source: workflow commands, in the documentation of GitHub Actions
    """
    kind = {Severity.INFO: "notice"}.get(diagnostic.severity, diagnostic.severity.value)
    properties = {"file": diagnostic.file, "line": diagnostic.line, "col": diagnostic.column, "title": diagnostic.code}
    texts = {key: _escaped(str(value)) for key, value in properties.items() if value is not None}
    pairs = ",".join(f"{key}={text.replace(':', '%3A').replace(',', '%2C')}" for key, text in texts.items())
    layer = f"{diagnostic.layer}: " if diagnostic.layer else ""
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    return f"::{kind} {pairs}::{_escaped(f'{layer}{diagnostic.message}{hint}')}"


def _escaped(text: str) -> str:
    return escaped(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def say_counts(diagnostics: Sequence[Diagnostic]) -> None:
    """Print the count of each code, and the counts of each file, the worst first."""
    if diagnostics:
        say_table(counts_by_code(diagnostics))
        say_table(counts_by_file(diagnostics))


def add_to(command: Command) -> None:
    command.argument("models", "MODEL.xml", "the files to check, or folders; - is standard input", FileName, nargs="+")
    model = command.under("model")
    model("--weights FILE", "the weights of the model; for one model only", FileName)
    model("--no-weights", "read only the topology; no .bin is needed", default=None)
    command.add(FormOptions())
    command.add(ChoiceOptions())
    command.add(FixOptions())
    option = command.under("checks")
    option("--runtime 2022.3", "also report what this OpenVINO release cannot read", _release)
    meaning = "for untrusted files: report everything that could harm a reader as an error; check each in a process"
    command.add(BudgetOptions(meaning))
    option(
        "--run",
        "with --untrusted: also run files without errors on random inputs, within the same limits",
        dest="with_run",
    )
    command.add(NodeDataOptions("the severity of the diagnostics of each layer (of one model)"))
    command.add(TargetDevice())
    command.add(WorkerOptions(default="one for each core, if it takes long"))
    command.under("outputs")("--profile", "show how long reading, inference and rules took")
    command.shared("extension", "shape", "html")


def run(options: Options) -> int:
    choices, form = options[ChoiceOptions], options[FormOptions]
    budgets, pool, target = options[BudgetOptions], options[WorkerOptions], options[TargetDevice]
    settings = choices.settings(
        untrusted=budgets.untrusted,
        no_weights=False if options.weights is not None else options.no_weights,
        runtime=options.runtime,
        device=target.device,
    )
    budget = budgets.budget(run=options.with_run)
    _refuse_contradictions(options)
    target.take(settings)
    failing = list(Severity)[: list(Severity).index(settings.fail_on) + 1]
    form.begin(failing, is_silent=choices.write_baseline is not None, untrusted=budgets.untrusted)
    fixes = options[FixOptions]
    how = _check_options(settings, options.shape, options.extension)
    baseline = None
    if settings.baseline is not None and choices.write_baseline is None:
        from ovir.checks.baseline import Baseline

        options.refuse_overwriting(settings.baseline)  # which a configuration file may name
        baseline = Baseline.read(settings.baseline)
    if budgets.untrusted:
        from ovir.checks.untrusted.gate import find_untrusted  # trusted files do not need it

        files, diagnostics = find_untrusted(options.models)
    else:
        files, diagnostics = find_files(options.models)
    form.say(diagnostics)
    checked: list[str] = []
    idle: dict[str, bool] = {}
    known = 0
    names = [name for name, _ in files]
    with (
        pool.opened() if pool.are_given and budget is None else nullcontext() as workers,
        closing(
            _check_untrusted(names, options.weights, how, budget, pool.workers)
            if budget is not None
            else check_each(names, options.weights, how, workers)
        ) as results,
    ):
        for (name, in_folder), (of_file, took) in zip(counted("checking files", files), results, strict=True):
            if in_folder and (is_no_model(of_file) if budgets.untrusted else any(d.code == NOT_IR.id for d in of_file)):
                continue  # a folder may hold other XML files
            checked.append(name)
            if fixes.are_for(of_file):
                of_file = fixes.apply(name, options.weights, how, settings, of_file, form)
            of_file = target.with_answer(name, options.weights, of_file)
            form.times.update(took)
            for text, code in settings.ignored_in(name).items():
                hides = any(d.code.startswith(code) for d in of_file)
                idle[text] = idle.get(text, not _is_left_out(code, settings)) and not hides
            wanted = [d for d in of_file if settings.reports(d, name)]
            new = [d for d in wanted if baseline is None or d.code in NEVER_IGNORED or not baseline.takes(d)]
            known += len(wanted) - len(new)
            diagnostics += new
            form.say(new)
    if not checked and files:
        nothing = nothing_checked(len(files), next(filter(os.path.isdir, options.models)))
        diagnostics.append(nothing)
        form.say([nothing])
    if choices.write_baseline is not None:
        return _write_baseline(choices.write_baseline, diagnostics)
    if options[NodeDataOptions].node_data is not None:
        _write_node_data(options.models[0], options[NodeDataOptions], diagnostics)
    form.finish(len(checked), diagnostics, known, with_times=options.profile)
    if not form.quiet and all(settings.wants(code.id) for code in REASONS):
        target.say(diagnostics)
    if options.html is not None:
        from ovir.cli.options.report import write_html
        from ovir.reports.check_page import check_page

        page = partial(check_page, checked, diagnostics, known=known, need_weights=not settings.no_weights)
        write_html(options.html, lambda: page(weights=options.weights), options.command_line)
    if baseline is not None and (missing := baseline.count_missing(checked, settings.wants_in)):
        print_message(f"{baseline.path}: {plural(missing, 'diagnostic')} no longer found; write the baseline again")
    for text in (text for text, is_idle in idle.items() if is_idle and not (form.quiet or settings.no_weights)):
        print_message(f"{text} hides nothing in {'this file' if len(checked) == 1 else 'these files'}; remove it")
    return status_of(diagnostics, failing)


class FixOptions(Group):
    """Whether diagnostics are fixed, which of them, and where the result is written."""

    fix: bool
    diff: bool
    output: str | None
    unsafe_fixes: bool
    no_verify: bool

    def add_to(self, command: Command) -> None:
        option = command.under("fixes")
        option("--fix", "change the file where a diagnostic has an exact fix, and prove that results stay the same")
        target = command.under("fixes", exclusive=True)
        target("--diff", "with --fix: print the change, and write nothing")
        target("-o, --output OUT.xml", "with --fix: write the result there, with the weights", OutputFile)
        option("--unsafe-fixes", "with --fix: also apply fixes that may change results")
        option("--no-verify", "with --fix: leave out the proof, on random inputs")

    def are_for(self, diagnostics: Sequence[Diagnostic]) -> bool:
        """Return whether a file with these diagnostics is fixed, or written elsewhere."""
        is_usable = not any(CODES[d.code].unusable and d.code != NO_WEIGHTS.id for d in diagnostics)
        return self.fix and is_usable and (self.output is not None or any(d.fix is not None for d in diagnostics))

    def apply(
        self,
        name: str,
        weights: str | None,
        how: CheckOptions,
        settings: Settings,
        diagnostics: list[Diagnostic],
        form: FormOptions,
    ) -> list[Diagnostic]:
        """Fix a file, say what was fixed, and return the diagnostics of the file that is now on the disk."""
        from ovir.checks.fixing import fix_here

        try:
            result = fix_here(
                name,
                weights,
                how,
                unsafe=self.unsafe_fixes,
                verify=not self.no_verify,
                wanted=lambda d: settings.reports(d, name),
            )
            if self.diff:
                form.say_diff(result.diff())
                return diagnostics
            if result.fixed or self.output is not None:
                result.save(self.output, weights)
        except (ModelError, ReadError, WriteError) as error:
            return [*diagnostics, *(d if d.file else replace(d, file=name) for d in error.diagnostics)]
        form.say_fixed(self.output or name, result.fixed, result.verdict)
        return result.left


class FormOptions(Group):
    """Prints and writes diagnostics in the form that the options choose."""

    format: str
    sarif: str | None
    quiet: bool

    def add_to(self, command: Command) -> None:
        option = command.under("outputs")
        form = command.under("outputs", exclusive=True)
        form(
            "--format",
            "how diagnostics are printed (default: text)",
            choices=("text", "json", "github"),
            default="text",
        )
        form("--json", "the same as --format json", action="store_const", const="json", dest="format")
        form("--summary", "print counts by code and by file only", action="store_const", const="summary", dest="format")
        option("--sarif FILE", "also write the diagnostics as SARIF 2.1.0 (- for stdout)", output_with())
        option("--quiet, -q", "print only diagnostics that make the exit status 1 or 2, and no closing line")

    def begin(self, failing: Sequence[Severity], *, is_silent: bool, untrusted: bool) -> None:
        """Begin a check, whose exit status is 1 for severities in ``failing``."""
        self.form = "none" if self.sarif == "-" or is_silent else self.format
        self.failing, self.untrusted = failing, untrusted
        self.times: Counter[str] = Counter()

    def say(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Print the diagnostics of a file in the forms that do not need the diagnostics of later files."""
        for diagnostic in self._loud(diagnostics) if self.form in ("text", "github") else ():
            say(colored(diagnostic) if self.form == "text" else annotation(diagnostic))

    def say_diff(self, text: str) -> None:
        """Print the change of a file: with text on stdout, with other forms on stderr."""
        is_text = self.form == "text"
        stream = sys.stdout if is_text else sys.stderr
        for line in text.removesuffix("\n").split("\n") if text else ():
            (say if is_text else print_message)("\t".join(map(escaped, line.split("\t"))) if stream.isatty() else line)

    def say_fixed(self, path: str, fixed: Sequence[Diagnostic], verdict: str) -> None:
        """Print what was fixed in a file."""
        for diagnostic in fixed if not self.quiet else ():
            assert diagnostic.fix is not None
            text = str(replace(diagnostic, message=diagnostic.fix.what, hint=None))
            print_message(text.replace(f"{diagnostic.severity}[", "fixed[", 1))
        if fixed:
            print_message(f"{path}: {plural(len(fixed), 'diagnostic')} fixed; {verdict}")

    def finish(self, files: int, diagnostics: Sequence[Diagnostic], known: int, *, with_times: bool) -> None:
        """Print and write the results for all files together."""
        if self.form == "json":
            say_json([{**d.to_dict(), "fixable": d.fix is not None} for d in diagnostics])
        if self.form == "summary":
            say_counts(self._loud(diagnostics))
        if self.sarif is not None:
            from ovir.io.sarif import to_sarif

            log = to_sarif(diagnostics, ovir.__version__, untrusted=self.untrusted)
            if self.sarif == "-":
                say_json(log)
            else:
                write_json(self.sarif, log, "write the SARIF log")
        if with_times:
            total = sum(self.times.values()) or 1.0
            for stage, seconds in self.times.items():
                print_message(f"{stage:<10} {seconds * 1e3:9.1f} ms  {seconds / total:4.0%}")
            print_message(f"share of other work than inference: {1 - self.times['inference'] / total:.0%}")
        if not self.quiet:
            of_baseline = f"; {known:,} known from the baseline" if known else ""
            fixable = sum(d.fix is not None and d.fix.is_safe for d in diagnostics)
            with_fixes = f"; {fixable:,} fixable with --fix" if fixable else ""
            print_message(f"{plural(files, 'file')} checked: {counts_text(diagnostics)}{of_baseline}{with_fixes}")

    def _loud(self, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        return [d for d in diagnostics if not self.quiet or d.severity in self.failing]


def _write_baseline(path: str, diagnostics: Sequence[Diagnostic]) -> int:
    """Write all diagnostics; for unusable files, print them instead."""
    from ovir.checks.baseline import write_baseline

    known = [d for d in diagnostics if d.code not in NEVER_IGNORED]
    unusable = [d for d in diagnostics if d.code in NEVER_IGNORED]
    write_baseline(path, known)
    for diagnostic in unusable:
        say(colored(diagnostic))
    codes = ", ".join(sorted({d.code for d in unusable}))
    without = f", but not the {plural(len(unusable), 'diagnostic')} of {codes}, which cannot be ignored"
    print_message(f"{path}: {plural(len(known), 'diagnostic')} written{without if unusable else ''}")
    return UNUSABLE if unusable else DONE


def _write_node_data(path: str, target: NodeDataOptions, diagnostics: Sequence[Diagnostic]) -> None:
    """Write the severities of layers. The topology is read once more, because the check keeps no model."""
    from ovir.view.overlays import of_diagnostics

    try:
        model = read_recovering(path, need_weights=False).model
    except ReadError:
        print_message(f"{target.node_data}: not written, because the model cannot be read")
        return
    target.write(of_diagnostics(model, diagnostics), model)


# --------------------------------------------------------------------------- arguments


class ChoiceOptions(Group):
    """Which diagnostics are reported, and which of them are faults."""

    select: Sequence[str] | None
    ignore: Sequence[str] | None
    fail_on: str | None
    baseline: str | None
    write_baseline: str | None
    no_config: bool

    def add_to(self, command: Command) -> None:
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

    def settings(self, *, untrusted: bool, **others: object) -> Settings:
        """Return the settings of the nearest configuration file, overridden by the options of the command line, of
        which ``others`` are in no group."""
        ignored = self.no_config or untrusted  # the nearest file may be untrusted
        settings = Settings() if ignored else find_settings(os.curdir)
        given: dict[str, Any] = {
            "select": None if self.select is None else _codes("--select", self.select),
            "ignore": None if self.ignore is None else _codes("--ignore", self.ignore, to_ignore=True),
            "fail_on": None if self.fail_on is None else Severity(self.fail_on),
            "baseline": self.baseline,
            **others,
        }
        return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _check_options(settings: Settings, shapes: Sequence[str], extensions: Sequence[str]) -> CheckOptions:
    return CheckOptions(
        need_weights=not settings.no_weights,
        shapes=_shapes(shapes),
        runtime=settings.runtime,
        device=settings.device and parse_device(settings.device),
        skip=tuple(code for code in CODES if not settings.selects(code) or _is_left_out(code, settings)),
        extensions=tuple(os.path.abspath(path) for path in extensions),
    )


def _is_left_out(code: str, settings: Settings) -> bool:
    """Return whether an ignored code, or one that begins so, is not even looked for: it would replace others."""
    return FOREIGN_WEIGHTS.id.startswith(code) and not settings.wants(code)


def _refuse_contradictions(options: Options) -> None:
    """Raise a usage error for options that exclude each other."""
    if options[BudgetOptions].untrusted:
        options.refuse("and --untrusted exclude each other", "--dask", "--node-data", "--html", "--shape")
        options.refuse("and --untrusted exclude each other: the device would compile the model", "--ask")
    if len(options.models) > 1 or os.path.isdir(options.models[0]):
        options.refuse("is for one model, and several are given", "--weights", "--shape", "--node-data", "--output")
    if STDIN in options.models:
        if len(options.models) > 1:
            raise_usage_error("standard input (-) is checked alone, without other files")
        options.refuse(
            "needs a file, not standard input", "--workers", "--dask", "--untrusted", "--ask", "--html", "--fix"
        )
    if options.no_weights:
        options.refuse("and --no-weights exclude each other", "--weights")
    if options.shape:
        options.refuse("and --shape exclude each other: a device is asked about the shapes of the file", "--ask")
    if not options[FixOptions].fix:
        options.refuse("needs --fix", "--diff", "--output", "--unsafe-fixes", "--no-verify")
    else:
        options.refuse("and --fix exclude each other", "--untrusted", "--ask", "--shape", "--write-baseline")
    form = options[FormOptions]
    if form.sarif == "-" and form.format != "text":
        raise_usage_error("--sarif - would print SARIF among other output: give it a file")


def _shapes(texts: Sequence[str]) -> Shapes | None:
    """Return the shapes that ``--shape`` gives, before the model is read; None without any."""
    shapes: dict[str, PartialShape] = {}
    for text in texts:
        name, _, shape = text.rpartition("=")  # names may contain "=", shapes do not
        if name in shapes or (shapes and "" in (name, *shapes)):
            raise_usage_error(f"--shape {text}: expected one shape for each input, as NAME={shape}")
        shapes[name] = parse_shape(text, shape)
    return shapes.get("", shapes) if shapes else None


def _release(text: str) -> tuple[int, int]:
    """Convert the text of ``--runtime``."""
    try:
        return parse_release(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.diagnostic.message) from None


def _codes(option: str, texts: Sequence[str], *, to_ignore: bool = False) -> tuple[str, ...]:
    try:
        return parse_codes(texts, to_ignore=to_ignore)
    except ValueError as error:
        raise_usage_error(f"{option} {error}")
