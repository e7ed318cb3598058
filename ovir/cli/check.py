"""``ovir check``: everything that is wrong with IR files."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import ovir
from ovir.checks.checker import check
from ovir.cli.arguments import add_command, check_target, file_name, misused
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.output import complain, plural, say, say_json
from ovir.cli.progress import FileProgress
from ovir.cli.status import is_unreadable, status_of
from ovir.diagnostics.codes import CODES, NO_WEIGHTS, NOT_IR, UNREADABLE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        run,
        "say everything that is wrong with IR files, and on which line",
        "  ovir check model.xml\n"
        "  ovir check models/ --ignore OVIR7 --fail-on warning --sarif diagnostics.sarif\n"
        "  ovir check model.xml --runtime 2022.3\n"
        "\nexit status: 0 no errors, 1 errors (or what --fail-on says), 2 a file that cannot be read at all\n"
        "what each code means: docs/diagnostics.md\n",
    )
    parser.add_argument(
        "models", nargs="+", type=file_name, metavar="MODEL.xml", help="the files to check, or folders of such files"
    )
    parser.add_argument(
        "--weights", type=file_name, metavar="FILE", help="the weights of the model; for one model only"
    )
    parser.add_argument("--no-weights", action="store_true", help="look at the topology only; no .bin is needed")
    add_extension(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the diagnostics as a JSON list")
    form.add_argument(
        "--sarif", type=file_name, metavar="FILE", help="write the diagnostics as SARIF 2.1.0 (- for stdout)"
    )
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="CODES",
        help="only these diagnostics: OVIR402,OVIR1 (all of 1xx)",
    )
    parser.add_argument("--ignore", action="append", default=[], metavar="CODES", help="not these diagnostics")
    parser.add_argument(
        "--fail-on",
        choices=[severity.value for severity in Severity],
        default=Severity.ERROR.value,
        help="diagnostics of this severity, or graver, make the exit status 1 (default: error)",
    )
    parser.add_argument(
        "--runtime",
        type=_release,
        metavar="2022.3",
        help="also report what this OpenVINO release cannot read",
    )
    parser.add_argument("--profile", action="store_true", help="tell how long reading, inference and rules took")


def run(arguments: argparse.Namespace) -> int:
    if arguments.weights is not None and (len(arguments.models) > 1 or os.path.isdir(arguments.models[0])):
        misused("--weights is for one model, and several are given")
    if arguments.weights is not None and arguments.no_weights:
        misused("--weights gives weights, and --no-weights says that none are to be looked at: give one of them")
    if arguments.sarif not in (None, "-"):
        check_target("--sarif", arguments.sarif)
    load_extensions(arguments.extension)
    select, ignore = _codes("--select", arguments.select), _codes("--ignore", arguments.ignore)
    files, diagnostics = _files(arguments.models)
    skip = frozenset(code for code in CODES if not _is_selected(code, select, ignore))
    one = partial(
        _check_file,
        weights=arguments.weights,
        need_weights=not arguments.no_weights,
        runtime=arguments.runtime,
        skip=skip,
    )
    is_text = not arguments.json and arguments.sarif != "-"
    for diagnostic in diagnostics if is_text else ():
        say(_coloured(diagnostic))
    times: Counter[str] = Counter()
    checked = 0
    with FileProgress(len(files)) as progress:
        results = _each(one, [name for name, _ in files], arguments.extension)
        for (_, in_folder), (found, took) in zip(files, results, strict=True):
            progress.advance()
            if in_folder and any(d.code == NOT_IR.id for d in found):
                continue  # a folder may hold XML of other kinds
            checked += 1
            times.update(took)
            wanted = [d for d in found if _is_wanted(d, select, ignore)]
            diagnostics += wanted
            for diagnostic in wanted if is_text else ():
                progress.print(lambda diagnostic=diagnostic: say(_coloured(diagnostic)))  # type: ignore[misc]
    if not checked and files:
        diagnostics.append(nothing := _nothing_checked(len(files), arguments.models))
        if is_text:
            say(_coloured(nothing))
    if arguments.json:
        say_json([found.to_dict() for found in diagnostics])
    if arguments.sarif is not None:
        _write_sarif(arguments.sarif, diagnostics)
    if arguments.profile:
        _tell_times(times)
    complain(_summary(checked, diagnostics))
    grave = list(Severity)[: list(Severity).index(Severity(arguments.fail_on)) + 1]
    return status_of(diagnostics, grave)


# --------------------------------------------------------------------------- the files


def _files(given: Sequence[str]) -> tuple[list[tuple[str, bool]], list[Diagnostic]]:
    """Every file to check, each once, and whether it was found in a folder; what is wrong with the folders."""
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
    """The .xml files in a folder and those in it; a folder that cannot be read is added to ``wrong``."""

    def refused(error: OSError) -> None:
        wrong.append(diagnose(UNREADABLE, f"cannot read the folder: {error.strerror}", Place(str(error.filename))))

    paths = (os.path.join(root, file) for root, _, files in os.walk(folder, onerror=refused) for file in files)
    return sorted(path for path in paths if path.lower().endswith(".xml") and os.path.isfile(path))


def _nothing_checked(files: int, given: Sequence[str]) -> Diagnostic:
    """Return the error where the folders hold .xml files and no model: nothing was checked, so nothing has passed."""
    folder = next(name for name in given if os.path.isdir(name))
    message = f"no OpenVINO IR was found: {plural(files, '.xml file')} with another root element than <net>"
    return diagnose(UNREADABLE, message, Place(folder))


def _each(
    one: Any, names: Sequence[str], extensions: Sequence[str]
) -> Iterator[tuple[list[Diagnostic], dict[str, float]]]:
    """The diagnostics of each file in order, by several processes where there are many files."""
    workers = min(os.cpu_count() or 1, len(names))
    if workers < 2 or len(names) < _FEW:
        yield from map(one, names)
        return
    from concurrent.futures import ProcessPoolExecutor  # takes longer to import than a small file to check

    with ProcessPoolExecutor(workers, initializer=load_extensions, initargs=(extensions,)) as pool:
        yield from pool.map(one, names)


_FEW = 4  # files; so few are checked before other processes are ready


def _check_file(
    name: str, weights: str | None, need_weights: bool, runtime: tuple[int, int] | None, skip: frozenset[str]
) -> tuple[list[Diagnostic], dict[str, float]]:
    times: dict[str, float] = {}
    found = check(name, weights, need_weights=need_weights, runtime=runtime, skip=skip, clock=times.__setitem__)
    return found, times


# --------------------------------------------------------------------------- what is wanted


def _release(text: str) -> tuple[int, int]:
    """The type of ``--runtime``."""
    from ovir.checks.releases import parse_release

    try:
        return parse_release(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.diagnostic.message) from None


def _codes(option: str, texts: list[str]) -> tuple[str, ...]:
    """The codes, or their beginnings, that an option lists."""
    codes = [code.strip().upper() for text in texts for code in text.split(",") if code.strip()]
    known = sorted(code for code in CODES if code < "OVIR8")  # the others are of runs and of wrong usage
    for code in codes:
        if not re.fullmatch(r"OVIR\d{0,3}", code) or not any(k.startswith(code) for k in known):
            misused(f"{option} {code}: no diagnostic has this code; they are {', '.join(known)}")
    return tuple(codes)


def _is_selected(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    return (not select or code.startswith(select)) and not (ignore and code.startswith(ignore))


def _is_wanted(found: Diagnostic, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    if is_unreadable(found) and found.code != NO_WEIGHTS.id:
        return True  # otherwise a file that was not checked at all would seem to have passed
    return _is_selected(found.code, select, ignore)


# --------------------------------------------------------------------------- what is printed

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}


def _coloured(found: Diagnostic) -> str:
    """The diagnostic as a text, its severity in colour on a terminal that shows colours."""
    text = str(found)
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    label = f"{found.severity}[{found.code}]"
    return text.replace(label, f"\x1b[1;{_COLOURS[found.severity]}m{label}\x1b[0m", 1)


def _summary(files: int, diagnostics: list[Diagnostic]) -> str:
    counts = Counter(found.severity for found in diagnostics)
    nouns = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    listed = ", ".join(plural(counts[s], nouns[s]) for s in Severity if counts[s])
    return f"{plural(files, 'file')} checked: {listed or 'nothing found'}"


def _tell_times(times: Counter[str]) -> None:
    total = sum(times.values()) or 1.0
    for stage, seconds in times.items():
        complain(f"{stage:<10} {seconds * 1e3:9.1f} ms  {seconds / total:4.0%}")
    complain(f"outside inference: {1 - times['inference'] / total:.0%}")


def _write_sarif(target: str, diagnostics: list[Diagnostic]) -> None:
    import json

    from ovir.io.sarif import to_sarif

    log = to_sarif(diagnostics, ovir.__version__)
    if target == "-":
        say_json(log)
    else:
        with open(target, "w", encoding="utf-8") as file:
            file.write(json.dumps(log, indent=1) + "\n")
