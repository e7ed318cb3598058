"""``ovir fuzz``: find random models on which a device or a compiler differs from ovir.

Examples:
  ovir fuzz --against openvino:CPU --time 10m --workers 2 -o findings
  ovir fuzz --against openvino:CPU --time 8h -o findings --resume
  ovir fuzz --against openvino:GPU --ops 'Interpolate|Pad' --types f16,i32
  ovir fuzz --against python:compiler.py:run --models 5000 --known known.txt --write-known known.txt

A function of a Python file is called with the path of an .xml and a list of arrays, and returns the arrays of the
outputs; NotImplementedError says that it does not support the model.

exit status: 0 nothing was found, 1 there are findings, 2 wrong usage, no device, or nothing that could be compared
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ovir.cli.options.command import Command, Options
from ovir.cli.options.comparison import DeviceOptions
from ovir.cli.options.targets import check_target
from ovir.cli.options.values import FileName, natural, positive
from ovir.cli.terminal.output import DONE, UNUSABLE, WRONG, print_message, print_note, say, say_json, say_table
from ovir.cli.terminal.progress import reported
from ovir.core.tables import Table, columns
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import and_others, escaped, plural, readable

if TYPE_CHECKING:
    from ovir.fuzzing.fuzz import Fuzzing


def add_to(command: Command) -> None:
    command.option(
        "--against SIDE",
        "openvino:DEVICE, runtime:RELEASE=PYTHON for an older OpenVINO in another Python, or "
        "python:FILE.py:FUNCTION for a compiler of one's own",
        FileName,
        required=True,
    )
    limits = command.under(None, exclusive=True)
    limits("--time TIME", "make models for 90s, 10m or 8h (default: 60s)", duration)
    limits("--models N", "make N models instead", positive)
    command.option(
        "--map M",
        f"make models for each operation version and element type until all have M (default: {CASES}); no time limit "
        "unless --time is given",
        positive,
        nargs="?",
        const=CASES,
    )
    command.option("--seed N", "the number of the first model, or with --map of the first round (default: 0)", natural)
    command.option("--ops REGEX", "make only models of one operation, of versions such as Gather-8 that match")
    command.option("--types TYPE,...", "make only models with these element types, such as f32,i8")
    command.option("--workers N", "try N models at a time (default: 1)", positive, default=1)
    command.option("-o, --output DIR", "the folder of the findings (default: findings)", FileName, default="findings")
    command.option("--resume", "go on where an earlier search in this folder has ended")
    command.option("--known FILE", "a file with signatures that are not reported", FileName)
    command.option("--write-known FILE", "add the signatures of the findings to this file")
    command.add(DeviceOptions())
    command.shared("json")


CASES = 3  # models of a cell: with usual values, equal ones, and extreme ones
_SHOWN = 12  # operation versions
_UNITS = {"s": 1, "m": 60, "h": 3600}


def duration(text: str) -> float:
    """Convert the text of an argument such as ``10m`` to seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not a time such as 90s, 10m or 8h"))
    return float(match[1]) * _UNITS[match[2] or "s"]


def run(options: Options) -> int:
    from ovir.fuzzing.fuzz import fuzz, write_known  # which imports all operations

    known, device = options.known, options[DeviceOptions]
    if options.write_known is not None:
        check_target("--write-known", options.write_known)
        if known == options.write_known and not os.path.exists(known):
            known = None  # it is written at the end of the first search
    limit = {} if device.timeout is None else {"timeout": device.timeout}
    with reported("fuzzing") as update:
        latest: list[Fuzzing] = []
        named = 0
        before: list[tuple[int, float]] = []  # what an earlier search has made, and its seconds

        def progress(fuzzing: Fuzzing, share: float) -> None:
            nonlocal named
            latest[:] = [fuzzing]
            for finding in fuzzing.findings[named:]:  # a search may take a night
                named += 1
                print_note(readable(f"{finding.kind}: {finding.message}"))
            before[:] = before or [(fuzzing.models, fuzzing.seconds)]
            made, passed = fuzzing.models - before[0][0], fuzzing.seconds - before[0][1]
            left = round(passed * (1 / share - 1)) if share else 0
            findings = plural(len(fuzzing.findings), "finding")
            text = f"{fuzzing.rate:.3g} models/s, {findings}, {left // 60}:{left % 60:02} left"
            update(made, round(made / share) if share else 0, text)

        try:
            fuzzing = fuzz(
                options.against,
                config=device.properties or None,
                time=options.time,
                models=options.models,
                map=options.map,
                seed=options.seed or 0,
                ops=options.ops,
                types=() if options.types is None else options.types.split(","),
                workers=options.workers,
                output=options.output,
                known=known,
                resume=options.resume,
                progress=progress,
                **limit,
            )
        except KeyboardInterrupt:
            if latest:
                _write_index(latest[0], options.output, options.command_line)
                if not options.json:
                    _print(latest[0], options.output)
            raise
    if options.write_known is not None:
        write_known(options.write_known, fuzzing)
    _write_index(fuzzing, options.output, options.command_line)
    if options.json:
        say_json(fuzzing.to_dict())
    else:
        _print(fuzzing, options.output)
    return WRONG if fuzzing.findings else DONE if fuzzing else UNUSABLE


def _write_index(fuzzing: Fuzzing, folder: str, command_line: Sequence[str]) -> None:
    """Write the report of the folder, if the packages for it are installed."""
    from ovir.cli.options.report import write_html
    from ovir.reports.fuzz_page import fuzz_page
    from ovir.reports.writing import require_report

    path = os.path.join(folder, "index.html")
    try:
        require_report(path)
    except InputError as error:
        print_message(f"no {escaped(path)} is written: {error.diagnostic.message}")
        return
    write_html(path, lambda: fuzz_page(fuzzing), command_line)


def _print(fuzzing: Fuzzing, folder: str) -> None:
    from ovir.fuzzing.device_map import NOT_TRIED, STATUSES

    for finding in fuzzing.findings:
        operations = " ".join(finding.operations) or "a model without layers"
        say(readable(f"{finding.kind}: {operations}: {finding.message}"))
        where = f"{escaped(folder)}/{finding.folder}"
        size = f"{plural(finding.layers, 'layer')}, {plural(finding.count, 'model')}, seed {finding.number}"
        say(f"  {where} ({size}, {finding.steadiness})")
    if fuzzing.known:
        say()
        rows = [(count, name) for name, count in fuzzing.known.most_common()]
        say_table(Table(columns("models: count; put down to: name"), rows))
    say()
    if fuzzing.unreached:
        more = and_others(max(len(fuzzing.unreached) - _SHOWN, 0), "more operation version")
        say(readable(f"not reached: {', '.join(fuzzing.unreached[:_SHOWN])}{more}"))
    statuses = Counter(cell.status for row in fuzzing.map.values() for cell in row.values())
    cells = ", ".join(f"{status} {statuses[status]:,}" for status in (*STATUSES, NOT_TRIED) if statuses[status])
    say(f"cells of the map: {cells or 'none'}")
    count = f"{plural(len(fuzzing.findings), 'finding')} on {fuzzing.description}"
    tried = {version for version, _ in fuzzing.map.tried()}
    versions = f"{plural(fuzzing.models, 'model')} of {plural(len(tried), 'operation version')}"
    if fuzzing.refused:
        versions += f"; ovir refuses {fuzzing.refused:,} of them, which are not valid"
    if fuzzing.unsupported_models:
        versions += f"; the other side does not support {fuzzing.unsupported_models:,}"
    say(f"{count}: {versions}; {fuzzing.seconds:.0f} s, {fuzzing.rate:.3g} models/s")
    if not fuzzing.compared:
        say("nothing could be compared")
