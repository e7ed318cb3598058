"""``ovir check``: report everything that is wrong with IR files."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ovir.cli.arguments import add_command, check_target, file_name, raise_usage_error
from ovir.cli.check_config import Settings, find_settings, must_be_reported, parse_codes
from ovir.cli.check_files import check_each, find_files, nothing_checked
from ovir.cli.check_output import annotation, coloured, counts_of, say_counts, say_times, write_sarif
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.html import add_html, check_html, write_html
from ovir.cli.node_data import add_node_data, check_node_data, write_node_data
from ovir.cli.output import print_message, say, say_json
from ovir.cli.outputs import output_file, refuse_overwriting
from ovir.cli.status import DONE, UNUSABLE, status_of
from ovir.cli.workers import add_workers, opened_workers
from ovir.core.progress import counted
from ovir.diagnostics.codes import NOT_IR, Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import plural

if TYPE_CHECKING:
    from ovir.reports.page import Page


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        run,
        "report everything that is wrong with IR files, and on which line",
        "  ovir check model.xml\n"
        "  ovir check models/ --ignore OVIR7 --fail-on warning --sarif diagnostics.sarif\n"
        "  ovir check models/ --summary\n"
        "  ovir check model.xml --runtime 2022.3\n"
        "  ovir check models/ --workers 8 --summary\n"
        "\nexit status: 0 no errors, 1 errors (or what --fail-on says), 2 a file that cannot be read at all\n"
        "\noptions are also read from [tool.ovir.check] in pyproject.toml or ovir.toml: docs/checking-in-ci.md\n"
        "\nwhat a code means: ovir explain CODE\n",
    )
    parser.add_argument(
        "models", nargs="+", type=file_name, metavar="MODEL.xml", help="the files to check, or folders of such files"
    )
    parser.add_argument(
        "--weights", type=file_name, metavar="FILE", help="the weights of the model; for one model only"
    )
    parser.add_argument(
        "--no-weights", action="store_true", default=None, help="read only the topology; no .bin is needed"
    )
    add_extension(parser)
    _add_forms(parser)
    _add_choices(parser)
    parser.add_argument(
        "--runtime",
        type=_release,
        metavar="2022.3",
        help="also report what this OpenVINO release cannot read",
    )
    add_workers(parser, default="one for each core, if it takes long")
    parser.add_argument("--profile", action="store_true", help="show how long reading, inference and rules took")


def _add_forms(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="how diagnostics are printed (default: text)",
    )
    form.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    form.add_argument(
        "--summary", action="store_const", const="summary", dest="format", help="print counts by code and by file only"
    )
    parser.add_argument(
        "--sarif", type=output_file, metavar="FILE", help="also write the diagnostics as SARIF 2.1.0 (- for stdout)"
    )
    add_html(parser)
    add_node_data(parser, "the severity of the diagnostics of each layer (of one model)")
    parser.add_argument(
        "--quiet",
        "-q",
        action="store_true",
        help="print only diagnostics that make the exit status 1 or 2, and no closing line",
    )


def _add_choices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--select", action="append", metavar="CODES", help="report only these diagnostics: OVIR402,OVIR1 (all of 1xx)"
    )
    parser.add_argument("--ignore", action="append", metavar="CODES", help="do not report these diagnostics")
    parser.add_argument(
        "--fail-on",
        choices=[severity.value for severity in Severity],
        help="diagnostics of at least this severity make the exit status 1 (default: error)",
    )
    baseline = parser.add_mutually_exclusive_group()
    baseline.add_argument(
        "--baseline", type=file_name, metavar="FILE.json", help="do not report the diagnostics recorded in this file"
    )
    baseline.add_argument(
        "--write-baseline", type=output_file, metavar="FILE.json", help="record the diagnostics in this file"
    )
    parser.add_argument("--no-config", action="store_true", help="do not look for ovir.toml or pyproject.toml")


def run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    _refuse_contradictions(arguments)
    check_html(arguments)
    load_extensions(arguments.extension)
    failing = list(Severity)[: list(Severity).index(settings.fail_on) + 1]
    output = _Output(arguments, failing)
    baseline = None
    if settings.baseline is not None and arguments.write_baseline is None:
        from ovir.checks.baseline import Baseline

        refuse_overwriting(arguments, settings.baseline)  # which a configuration file may name
        baseline = Baseline.read(settings.baseline)
    files, diagnostics = find_files(arguments.models)
    output.say(diagnostics)
    checked: list[str] = []
    known = 0
    names = [name for name, _ in files]
    with (
        _workers(arguments) as workers,
        closing(check_each(names, arguments.weights, settings, arguments.extension, workers)) as results,
    ):
        for (name, in_folder), (found, took) in zip(counted("checking files", files), results, strict=True):
            if in_folder and any(d.code == NOT_IR.id for d in found):
                continue  # a folder may hold other XML files
            checked.append(name)
            output.times.update(took)
            wanted = [d for d in found if settings.reports(d, name)]
            new = [d for d in wanted if baseline is None or must_be_reported(d) or not baseline.takes(d)]
            known += len(wanted) - len(new)
            diagnostics += new
            output.say(new)
    if not checked and files:
        diagnostics.append(nothing := nothing_checked(len(files), arguments.models))
        output.say([nothing])
    if arguments.write_baseline is not None:
        return _write_baseline(arguments.write_baseline, diagnostics)
    if arguments.node_data is not None:
        _write_node_data(arguments, settings, diagnostics)
    output.finish(len(checked), diagnostics, known)
    write_html(arguments, lambda: _page(arguments, settings, checked, diagnostics, known))
    if baseline is not None and (missing := baseline.count_missing(checked, settings.wants_in)):
        print_message(f"{baseline.path}: {plural(missing, 'diagnostic')} no longer found; write the baseline again")
    return status_of(diagnostics, failing)


def _workers(arguments: argparse.Namespace) -> AbstractContextManager[dict[str, Any] | None]:
    """Return what says who checks the files; None leaves it to ``check_each``."""
    return nullcontext() if arguments.workers is None and arguments.dask is None else opened_workers(arguments)


def _page(
    arguments: argparse.Namespace,
    settings: Settings,
    checked: Sequence[str],
    diagnostics: Sequence[Diagnostic],
    known: int,
) -> Page:
    from ovir.reports.check_page import check_page

    weights, need_weights = arguments.weights, not settings.no_weights
    return check_page(checked, diagnostics, known=known, weights=weights, need_weights=need_weights)


class _Output:
    """Prints diagnostics in the form that the arguments request."""

    def __init__(self, arguments: argparse.Namespace, failing: Sequence[Severity]) -> None:
        self.form = "none" if arguments.sarif == "-" or arguments.write_baseline else arguments.format
        self.sarif = arguments.sarif
        self.is_quiet = arguments.quiet
        self.failing = failing
        self.profiled = arguments.profile
        self.times: Counter[str] = Counter()

    def say(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Print the diagnostics of a file in the forms that do not need the diagnostics of later files."""
        for found in self._loud(diagnostics) if self.form in ("text", "github") else ():
            say(coloured(found) if self.form == "text" else annotation(found))

    def finish(self, files: int, diagnostics: Sequence[Diagnostic], known: int) -> None:
        """Print and write what concerns all files together."""
        if self.form == "json":
            say_json([found.to_dict() for found in diagnostics])
        if self.form == "summary":
            say_counts(self._loud(diagnostics))
        if self.sarif is not None:
            write_sarif(self.sarif, diagnostics)
        if self.profiled:
            say_times(self.times)
        if not self.is_quiet:
            of_baseline = f"; {known:,} known from the baseline" if known else ""
            print_message(f"{plural(files, 'file')} checked: {counts_of(diagnostics)}{of_baseline}")

    def _loud(self, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        return [d for d in diagnostics if not self.is_quiet or d.severity in self.failing]


def _write_baseline(path: str, diagnostics: Sequence[Diagnostic]) -> int:
    """Write all diagnostics; for unusable files, print them instead."""
    from ovir.checks.baseline import write_baseline

    known = [found for found in diagnostics if not must_be_reported(found)]
    unusable = [found for found in diagnostics if must_be_reported(found)]
    write_baseline(path, known)
    for found in unusable:
        say(coloured(found))
    print_message(f"{path}: {plural(len(known), 'diagnostic')} written")
    return UNUSABLE if unusable else DONE


def _write_node_data(arguments: argparse.Namespace, settings: Settings, diagnostics: Sequence[Diagnostic]) -> None:
    """Write the severities of layers, for which the model is read once more: a check keeps none."""
    from ovir.checks.recovering import read_recovering
    from ovir.integrations.model_explorer.overlays import of_diagnostics

    try:
        model = read_recovering(arguments.models[0], arguments.weights, need_weights=not settings.no_weights).model
    except ReadError:
        print_message(f"{arguments.node_data}: not written, because the model cannot be read")
        return
    write_node_data(arguments.node_data, of_diagnostics(model, diagnostics), model)


# --------------------------------------------------------------------------- arguments


def _settings(arguments: argparse.Namespace) -> Settings:
    """Return the settings of the nearest configuration file, overridden by the options of the command line."""
    settings = Settings() if arguments.no_config else find_settings(os.curdir)
    given: dict[str, Any] = {
        "select": None if arguments.select is None else _codes("--select", arguments.select),
        "ignore": None if arguments.ignore is None else _codes("--ignore", arguments.ignore),
        "fail_on": None if arguments.fail_on is None else Severity(arguments.fail_on),
        "no_weights": False if arguments.weights is not None else arguments.no_weights,
        "runtime": arguments.runtime,
        "baseline": arguments.baseline,
    }
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    check_node_data(arguments)
    for option in ("weights", "node_data"):
        if getattr(arguments, option) is not None and (len(arguments.models) > 1 or os.path.isdir(arguments.models[0])):
            raise_usage_error(f"--{option.replace('_', '-')} is for one model, and several are given")
    if arguments.weights is not None and arguments.no_weights:
        raise_usage_error("--weights and --no-weights exclude each other")
    if arguments.sarif == "-" and arguments.format != "text":
        raise_usage_error("--sarif - would print SARIF among other output: give it a file")
    if arguments.sarif not in (None, "-"):
        check_target("--sarif", arguments.sarif)
    if arguments.write_baseline is not None:
        check_target("--write-baseline", arguments.write_baseline)


def _release(text: str) -> tuple[int, int]:
    """Convert the text of ``--runtime``."""
    from ovir.checks.releases import parse_release

    try:
        return parse_release(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.diagnostic.message) from None


def _codes(option: str, texts: Sequence[str]) -> tuple[str, ...]:
    try:
        return parse_codes(texts)
    except ValueError as error:
        raise_usage_error(f"{option} {error}")
