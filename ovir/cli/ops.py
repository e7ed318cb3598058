"""``ovir ops``: what ovir can do with each operation version, or the description of some operations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ovir.analysis.operation_pages import described
from ovir.cli.arguments import add_command, add_json, raise_usage_error
from ovir.cli.output import say, say_json, say_table
from ovir.ops import find
from ovir.ops.base import opsets
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Parameter


@dataclass(frozen=True)
class Entry:
    """One operation version."""

    name: str
    opset: int
    opsets: str
    """The opsets that contain this version, as ``8-16``."""
    cls: type[Operator] | None

    @property
    def infers(self) -> bool:
        return hasattr(self.cls, "infer")

    @property
    def runs(self) -> bool:
        """Return whether ovir runs the operation; a Parameter counts, because the caller feeds it."""
        return hasattr(self.cls, "run") or self.cls is Parameter

    @property
    def doc(self) -> str:
        """Return the first sentence of its documentation."""
        text = " ".join((self.cls.__doc__ or "").split("\n\n")[0].split()) if self.cls else ""
        return text.split(". ")[0].rstrip(".:")


def entries() -> list[Entry]:
    return [
        Entry(type_name, birth, ",".join(p for p in ranges.split(",") if p != "x"), find(type_name, birth))
        for type_name, versions in sorted(opsets.OPERATIONS.items(), key=lambda item: item[0].lower())
        for birth, ranges in versions.items()
    ]


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "ops",
        run,
        "list every operation version, and whether ovir infers and runs it",
        "  ovir ops\n  ovir ops Gather              attributes, inputs and meaning of each version\n"
        "  ovir ops --markdown > docs/operations.md\n",
    )
    parser.add_argument(
        "operations",
        nargs="*",
        metavar="OPERATION",
        help="describe these operations; upper and lower case are the same",
    )
    form = parser.add_mutually_exclusive_group()
    add_json(form)  # type: ignore[arg-type]  # a group takes arguments as a parser does
    form.add_argument("--markdown", action="store_true", help="print the page docs/operations.md")


def run(arguments: argparse.Namespace) -> int:
    if arguments.operations:
        return _describe(arguments)
    listed = entries()
    if arguments.json:
        say_json([_as_json(entry) for entry in listed])
    elif arguments.markdown:
        _print_markdown(listed)
    else:
        rows = ((e.name, f"opset{e.opset}", e.opsets, _yes(e.infers), _yes(e.runs)) for e in listed)
        say_table(("operation", "version", "opsets", "inference", "kernel"), rows)
        say()
        say(_totals(listed))
    return 0


def _describe(arguments: argparse.Namespace) -> int:
    if arguments.markdown:
        raise_usage_error("--markdown prints the page of all operations: name none")
    chosen = [_versions(name) for name in arguments.operations]
    if arguments.json:
        say_json([{**_as_json(entry), **described(entry.cls)} for versions in chosen for entry in versions])
        return 0
    for entry in (entry for versions in chosen for entry in versions):
        for line in _lines(entry):
            say(line)
        say()
    return 0


def _versions(name: str) -> list[Entry]:
    """Return the versions of an operation by its name in any case."""
    canonical = opsets.canonical_type(name)
    if canonical is None:
        raise_usage_error(*opsets.why_unresolved(name, "opset1"))
    return [entry for entry in entries() if entry.name == canonical]


def _lines(entry: Entry) -> Iterator[str]:
    """Yield the lines that describe one version."""
    page = described(entry.cls)
    yield f"{entry.name}-{entry.opset}, in opset {entry.opsets}"
    yield ""
    yield from (f"  {line}".rstrip() for line in page["documentation"].splitlines())
    for head, lines in (
        ("inputs", [_input_cells(item) for item in page["inputs"]]),
        ("attributes", [_attribute_cells(item) for item in page["attributes"]]),
    ):
        yield ""
        yield f"  {head}{'' if lines else ': none'}"
        width = max((len(first) for first, _ in lines), default=0)
        yield from (f"    {first:{width}}  {rest}".rstrip() for first, rest in lines)
    yield ""
    yield f"  inference: {_yes(entry.infers)}, kernel: {_yes(entry.runs)}, specification: {page['source']}"


def _input_cells(item: dict[str, Any]) -> tuple[str, str]:
    types = item["type"] or "types depend on the attributes or bodies"
    kind = ", any number of them" if item["repeated"] else ", optional" if item["optional"] else ""
    return item["name"], types + kind


def _attribute_cells(item: dict[str, Any]) -> tuple[str, str]:
    parts = [item["type"]]
    if item["choices"]:
        parts.append(f"one of {', '.join(item['choices'])}")
    if item["minimum"] is not None:
        parts.append(f"at least {item['minimum']}")
    parts.append("required" if item["required"] else f"default {item['default']}")
    return item["name"], ", ".join(parts)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _totals(listed: list[Entry]) -> str:
    infers, runs = sum(e.infers for e in listed), sum(e.runs for e in listed)
    return f"{len(listed)} operation versions: {infers} inferred, {runs} run"


def _as_json(entry: Entry) -> dict[str, Any]:
    return {
        "type": entry.name,
        "version": f"opset{entry.opset}",
        "opsets": entry.opsets,
        "inference": entry.infers,
        "kernel": entry.runs,
    }


def _print_markdown(listed: list[Entry]) -> None:
    say("# Operations")
    say()
    say("Made by `ovir ops --markdown`. *Version* is the first opset that holds an operation so, *opsets* are all.")
    say()
    say(f"{_totals(listed)}.")
    say()
    say("| Operation | Version | Opsets | Inference | Kernel | What it is |")
    say("|---|---|---|---|---|---|")
    for e in listed:
        doc = e.doc.replace("|", "\\|")
        say(f"| {e.name} | opset{e.opset} | {e.opsets} | {_yes(e.infers)} | {_yes(e.runs)} | {doc} |")
