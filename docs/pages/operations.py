"""The pages of operations in Markdown: the list of all, and one page for each operation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ovir.cli.operations import OperationEntry, described, entries, example_of, tokenizer_entries, totals
from ovir.ops.base.opsets import OPERATIONS

GROUPS = {
    "Structure of a model": ("infrastructure", "state", "control_flow"),
    "Arithmetic": ("arithmetic", "unary"),
    "Activation functions": ("activation",),
    "Comparison, logic and choice": ("comparison", "logic", "select"),
    "Types and quantization": ("convert", "quantization"),
    "Matrices and attention": ("matmul", "attention"),
    "Convolutions": ("convolution", "patches"),
    "Pooling": ("pooling",),
    "Normalization": ("normalization",),
    "Reduction": ("reduction",),
    "Shapes": ("shape", "broadcast"),
    "Parts and order": ("movement", "slicing", "rearrange"),
    "Gather and scatter": ("gather", "scatter", "segments"),
    "Sorting and searching": ("sorting",),
    "Generated and random numbers": ("generate", "random"),
    "Images and resampling": ("interpolate", "grid_sample", "color"),
    "Regions and object detection": (
        *("roi_align", "roi_pooling", "nms", "multiclass_nms", "detection_output", "detectron"),
        *("prior_box", "proposal", "yolo"),
    ),
    "Recurrent networks and sequences": ("recurrent", "ctc"),
    "Fourier transforms": ("fourier",),
    "Strings": ("string_tensor",),
}
"""The groups of operations, each with modules of ``ovir.ops``."""
TOKENIZERS = "Operations of openvino_tokenizers"
_TOKENIZERS = "They belong to the extension openvino_tokenizers. All are inferred and run"


def groups() -> dict[str, list[str]]:
    """Return the names of the operations of each group, in order; those of openvino_tokenizers come last."""
    module_of = {name: next(iter(found.values())).module for name, found in OPERATIONS.items()}
    found = {title: [n for n, m in module_of.items() if m in modules] for title, modules in GROUPS.items()}
    return {**found, TOKENIZERS: [e.name for e in tokenizer_entries() if e.name not in module_of]}


def _by_name() -> dict[str, list[OperationEntry]]:
    found: dict[str, list[OperationEntry]] = {}
    for entry in (*entries(), *tokenizer_entries()):
        found.setdefault(entry.name, []).append(entry)
    return found


# --------------------------------------------------------------------------- the list of all operations


def operations_page(*, linked: bool = False) -> str:
    """Return the page docs/operations.md, which lists all operations by groups; ``linked`` to a page for each."""
    by_name = _by_name()
    where = "A name leads to the page of the operation" if linked else "The documentation site has a page for each"
    lines = [
        "# Operations",
        "",
        "Written by `python -m ovir.generated_files`. The column *versions* has the opsets that introduced a version "
        f"of the operation, and the sentence is about the newest one. {where}, with its attributes, inputs, outputs, "
        "an example, and what it is exported to; `ovir ops NAME` prints the same.",
        "",
        f"{totals(entries())}.",
    ]
    for title, names in groups().items():
        lines += ["", f"## {title}", ""]
        if title == TOKENIZERS:
            lines += [f"{_TOKENIZERS}; [Tokenizers](tokenizers.md) says what they need.", ""]
        lines += ["| operation | versions | what it is |", "|---|---|---|"]
        for name in names:
            versions = [entry for entry in by_name[name] if entry.opset] or by_name[name]
            births = ", ".join(entry.number for entry in versions)
            lines.append(_row(f"[{name}](operations/{name}.md)" if linked else name, births, versions[-1].doc))
    return "\n".join([*lines, ""])


def _row(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


# --------------------------------------------------------------------------- one operation


def operation_page(known: Sequence[OperationEntry]) -> str:
    """Return the page of an operation with some of its versions, the newest first.

    The operators of its export need onnx.
    """
    name, versions = known[0].name, known[::-1]
    group = next(title for title, names in groups().items() if name in names)
    anchor = re.sub(r"[^\w\- ]", "", group).lower().replace(" ", "-")
    named = ", ".join(f"[{entry.title}](#{_anchor(entry)})" for entry in versions)
    here = {entry.title for entry in versions}
    lines = [
        *("---", "search:", "  boost: 2", "---", ""),
        f"# {name}",
        "",
        f"{_text(versions[0].doc, here)}.",
        "",
        f"[{group}](../operations.md#{anchor}){f' · versions: {named}' if len(versions) > 1 else ''}",
        "",
    ]
    if example := example_of(name):
        lines += ["```python", example.code, "```", "", "It prints:", "", "```text", example.printed, "```", ""]
    for entry in versions:
        lines += _version(entry, here)
    return "\n".join(lines)


def _anchor(entry: OperationEntry) -> str:
    return entry.title.lower().replace(" ", "-")


def _version(entry: OperationEntry, here: Collection[str]) -> Iterator[str]:
    page = described(entry)
    yield f"## {entry.title}"
    yield ""
    where = (
        f"In opsets {entry.opsets}; {page['releases']}."
        if entry.opset
        else "Of an extension; its version is `extension`."
    )
    function = f" In Python: `{page['function']}`." if page["function"] else ""
    yield f"{where}{function}"
    yield ""
    yield _text(page["documentation"], here)
    yield ""
    inputs = [(item["name"], _input(item)) for item in page["inputs"]]
    yield from _table("input", ("types",), [*inputs, *page["where"].items()])
    attributes = [(item["name"], item["type"], _allowed(item), _default(item)) for item in page["attributes"]]
    yield from _table("attribute", ("type", "allowed values", "default"), attributes)
    outputs = [(str(index), text) for index, text in enumerate(page["outputs"])]
    yield from _table("output", ("type",), outputs)
    if not outputs and entry.name != "Result":
        yield "The attributes, the inputs or the bodies decide on its outputs.\n"
    for label, text in (("ONNX", page["onnx"]), ("Older releases", page["lowering"])):
        if text:
            yield f"**{label}**: {_text(text, here)}\n"
    for text in page["constructs"]:
        yield f"- {text}"
    yield ""
    source = page["source"] or "openvino_tokenizers"
    if page["page"]:
        source = f"[{source}]({page['page']})"
    yield f"Specification: {source}.\n"


def _table(head: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        if head != "output":
            yield f"No {head}s.\n"
        return
    yield _row(head, *columns)
    yield "|---" * (len(columns) + 1) + "|"
    for name, *cells in rows:
        yield _row(f"`{name}`" if head != "output" else name, *cells)
    yield ""


def _input(item: dict[str, Any]) -> str:
    types = f"`{item['declared']}`" if item["declared"] else item["type"] or "depend on the attributes or bodies"
    return types + (", any number of them" if item["repeated"] else ", optional" if item["optional"] else "")


def _allowed(item: dict[str, Any]) -> str:
    if item["choices"]:
        return ", ".join(f"`{choice}`" for choice in item["choices"])
    return "any" if item["minimum"] is None else f"at least {item['minimum']}"


def _default(item: dict[str, Any]) -> str:
    return "required" if item["required"] else f"`{item['default']}`"


def _text(text: str, here: Collection[str]) -> str:
    """Return a docstring as Markdown, with links to other versions that it names; those ``here`` are on its page."""

    def linked(match: re.Match[str]) -> str:
        name, opset = match[1], int(match[2])
        if opset not in OPERATIONS.get(name, {}):
            return match[0]
        return f"[{match[0]}]({'' if match[0] in here else f'{name}.md'}#{match[0].lower()})"

    parts = re.split(r"(``.*?``|`[^`]*`)", text)  # each odd one is code
    parts[::2] = [
        re.sub(r"\b([A-Z]\w+)-(\d+)\b", linked, re.sub(r"([*\[\]_])", r"\\\1", part).replace("<", "&lt;"))
        for part in parts[::2]
    ]
    return "".join(parts)
