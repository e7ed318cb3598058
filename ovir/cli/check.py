"""``ovir check``: everything that is wrong with IR files."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import ovir
from ovir.cli.arguments import add_command, check_target, file_name, misused
from ovir.cli.output import complain, plural, say, say_json
from ovir.cli.status import is_unreadable, status_of
from ovir.diagnostics import NO_WEIGHTS, Diagnostic, Severity
from ovir.tools.sarif import known_codes, to_sarif


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        run,
        "say everything that is wrong with IR files, and on which line",
        "  ovir check model.xml\n"
        "  ovir check models/*.xml --ignore OVIR110 --sarif findings.sarif\n"
        "\nexit status: 0 no errors, 1 errors (with --strict warnings, too), 2 a file that cannot be read at all\n",
    )
    parser.add_argument("models", nargs="+", type=file_name, metavar="MODEL.xml", help="the files to check")
    parser.add_argument(
        "--weights", type=file_name, metavar="FILE", help="the weights of the model; for one model only"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the findings as a JSON list")
    form.add_argument(
        "--sarif", type=file_name, metavar="FILE", help="write the findings as SARIF 2.1.0 (- for stdout)"
    )
    parser.add_argument(
        "--select", action="append", default=[], metavar="CODES", help="only these findings: OVIR202,OVIR1 (all of 1xx)"
    )
    parser.add_argument("--ignore", action="append", default=[], metavar="CODES", help="not these findings")
    parser.add_argument("--strict", action="store_true", help="warnings make the exit status 1, too")


def run(arguments: argparse.Namespace) -> int:
    if arguments.weights is not None and len(arguments.models) > 1:
        misused(f"--weights is for one model, and {len(arguments.models)} are given")
    if arguments.sarif not in (None, "-"):
        check_target("--sarif", arguments.sarif)
    select, ignore = _codes("--select", arguments.select), _codes("--ignore", arguments.ignore)
    findings: list[Diagnostic] = []
    for model in arguments.models:
        for found in ovir.check(model, arguments.weights):
            if _is_wanted(found, select, ignore):
                findings.append(found)
                if not arguments.json and arguments.sarif != "-":
                    say(str(found))
    if arguments.json:
        say_json([found.to_dict() for found in findings])
    if arguments.sarif is not None:
        _write_sarif(arguments.sarif, findings)
    complain(_summary(len(arguments.models), findings))
    return status_of(findings, (Severity.ERROR, Severity.WARNING) if arguments.strict else (Severity.ERROR,))


def _codes(option: str, texts: list[str]) -> tuple[str, ...]:
    """The codes, or their beginnings, that an option lists."""
    known = known_codes()
    codes = [code.strip().upper() for text in texts for code in text.split(",") if code.strip()]
    for code in codes:
        if not re.fullmatch(r"OVIR\d{0,3}", code) or not any(k.startswith(code) for k in known):
            misused(f"{option} {code}: no finding has this code; they are {', '.join(sorted(known))}")
    return tuple(codes)


def _is_wanted(found: Diagnostic, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    if is_unreadable(found) and found.code != NO_WEIGHTS.id:
        return True  # otherwise a file that was not checked at all would seem to have passed
    return (not select or found.code.startswith(select)) and not (ignore and found.code.startswith(ignore))


def _summary(files: int, findings: list[Diagnostic]) -> str:
    counts = Counter(found.severity for found in findings)
    listed = ", ".join(plural(counts[s], s.value) for s in Severity if counts[s])
    return f"{plural(files, 'file')} checked: {listed or 'nothing found'}"


def _write_sarif(target: str, findings: list[Diagnostic]) -> None:
    log = to_sarif(findings, ovir.__version__)
    if target == "-":
        say_json(log)
    else:
        Path(target).write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")
