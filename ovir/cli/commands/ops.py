"""``ovir ops``: list every operation version, and whether ovir infers and runs it.

Examples:
  ovir ops
  ovir ops Gather              attributes, inputs and meaning of each version
  ovir ops Gather-8            the same of one version
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ovir.cli import operations
from ovir.cli.operations import OperationEntry, yes_or_no
from ovir.cli.options.command import Command, Options
from ovir.cli.options.values import raise_usage_error
from ovir.cli.terminal.output import say, say_filled, say_json, say_table
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.ops.base import opsets


def add_to(command: Command) -> None:
    text = "describe these operations, or one version, as in Gather-8; upper and lower case are the same"
    command.argument("operations", "OPERATION", text, nargs="*")
    command.shared("json")


def run(options: Options) -> int:
    if options.operations:
        return _describe(options.operations, is_json=options.json)
    listed, tokenizers = operations.entries(), operations.tokenizer_entries()
    if options.json:
        say_json([_as_json(entry) for entry in (*listed, *tokenizers)])
    else:
        rows = [
            (e.name, e.version, e.opsets if e.opset else "", yes_or_no(e.infers), yes_or_no(e.runs))
            for e in (*listed, *tokenizers)
        ]
        heads = columns("operation: type; version: text; opsets: text; inference: text; kernel: text")
        say_table(Table(heads, rows, least=("opsets",)))
        say()
        say(f"{operations.totals(listed)}; and {len(tokenizers)} operations of openvino_tokenizers")
    return 0


def _describe(names: Sequence[str], *, is_json: bool) -> int:
    chosen = [_versions(name) for name in names]
    if is_json:
        say_json([{**_as_json(entry), **operations.described(entry)} for versions in chosen for entry in versions])
        return 0
    for versions in chosen:
        for line in (line for entry in versions for line in (*_lines(entry), "")):
            say_filled(line)
        for line in _example(versions[0].name):
            say(line)
    return 0


def _versions(text: str) -> list[OperationEntry]:
    """Return the versions of an operation by its name in any case, or the one that a text like ``Gather-8`` names."""
    name, dash, number = text.partition("-")
    known = operations.versions_of(name) or raise_usage_error(*opsets.why_unresolved(name or text, "opset1"))
    if not dash:
        return known
    found = [entry for entry in known if number == entry.number]
    if not found:
        listed = ", ".join(f"{entry.name}-{entry.number}" for entry in known)
        holder = opsets.resolve(known[0].name, f"opset{number}")
        hint = f"opset{number} contains {holder.type}-{holder.opset}" if holder is not None else None
        raise_usage_error(f"{known[0].name} has no version {number!r}: there is {listed}", hint)
    return found


def _example(name: str) -> Iterator[str]:
    """Yield the lines of the example of an operation, and of its output."""
    if example := operations.example_of(name):
        for head, text in (("example", example.code), ("prints", example.printed)):
            yield head
            yield ""
            yield from (f"  {line}".rstrip() for line in text.splitlines())
            yield ""


def _lines(entry: OperationEntry) -> Iterator[str]:
    """Yield the lines that describe one version."""
    page = operations.described(entry)
    where = f"in opset {entry.opsets}" if entry.opset else "of an extension"
    yield f"{entry.title if entry.opset else entry.name}, {where}"
    for paragraph in page["documentation"].replace("``", "`").split("\n\n"):
        yield ""
        lines = paragraph.splitlines()
        is_text = sys.stdout.isatty() and not any(line.startswith((" ", "-")) for line in lines)
        yield from (f"  {line}" for line in ([" ".join(lines)] if is_text else lines))
    for head, lines in (
        ("inputs", [*map(_input_cells, page["inputs"]), *page["where"].items()]),
        ("attributes", [_attribute_cells(item) for item in page["attributes"]]),
        ("outputs", [(str(index), text) for index, text in enumerate(page["outputs"])]),
    ):
        if lines or head != "outputs":
            yield ""
            yield f"  {head}{'' if lines else ': none'}"
        width = max((len(first) for first, _ in lines), default=0)
        yield from (f"    {first:{width}}  {rest}".rstrip() for first, rest in lines)
    yield ""
    yield f"  inference: {yes_or_no(entry.infers)}, kernel: {yes_or_no(entry.runs)}, " + (
        f"specification: {page['source'] or 'openvino_tokenizers'}"
    )
    found = (
        ("page", page["page"]),
        ("function", page["function"]),
        ("known to", page["releases"]),
        ("ONNX", page["onnx"]),
        ("older releases", page["lowering"]),
        *(("note", text) for text in page["constructs"]),
    )
    yield from (f"  {head}: {text}" for head, text in found if text)


def _input_cells(item: dict[str, Any]) -> tuple[str, str]:
    types = item["declared"] or item["type"] or "types depend on the attributes or bodies"
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


def _as_json(entry: OperationEntry) -> dict[str, Any]:
    return json_fields(entry, "type=name", "version", "opsets", "inference=infers", "kernel=runs")
