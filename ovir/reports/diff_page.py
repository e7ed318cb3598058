"""The report of ``ovir diff``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ovir.analysis.changes import Change, value_text
from ovir.analysis.diff import STATUSES, Diff, LayerDiff
from ovir.core.tables import Table, columns
from ovir.reports.charts import Chart, bars, label
from ovir.reports.page import Block, Detail, Figure, Page, Pairs, Text, Tone

_TONES: dict[str, Tone] = {
    "added": "good", "removed": "bad", "replaced": "warn", "moved": "info", "changed": "info", "renumbered": "plain",
}  # fmt: skip
_COLORS = {
    "added": "--good", "removed": "--bad", "replaced": "--warn", "moved": "--accent", "changed": "--info",
    "renumbered": "--muted",
}  # fmt: skip
MOST_BARS = 20


def diff_page(diff: Diff) -> Page:
    """Return the report on the differences of two models."""
    names = [model.path or model.name for model in (diff.a, diff.b)]
    page = Page("diff", f"{names[0]} → {names[1]}", str(diff), "good" if diff.is_equal else "warn")
    page.layers.add(diff.a, "in the first model")
    page.layers.add(diff.b, "in the second model")
    for status in STATUSES:
        count = diff.counts[status]
        page.figures.append(Figure(status, f"{count:,}", tone=_TONES[status] if count else "plain"))
    page.figures.append(Figure("affected outputs", f"{len(diff.affected):,}", "of another type as a consequence"))
    for note in diff.notes:
        page.add("Notes", Text(note))
    if diff.model:
        rows = [(_what(change), value_text(change.old), value_text(change.new)) for change in diff.model]
        page.add("Models as a whole", Table(columns("what: text 2; before: text 2; after: text 2"), rows))
    if diff.layers:
        note = "Click a layer to see what differs, its lines in both files, and its neighbors."
        page.add("Layers", _chart(diff), _layers(diff, page), note=note)
    if diff.affected:
        heads = columns("layer: layer 2; operation: type; output: count; before: tensor; after: tensor")
        affected = Table(heads, [(x.b, x.b.type, x.output, x.old, x.new) for x in diff.affected])
        page.add("Affected outputs", affected, note="These layers are equal, but their inputs differ.")
    return page


def _what(change: Change) -> str:
    return f"{change.what} {change.name}".rstrip()


def _layers(diff: Diff, page: Page) -> Table:
    rows, details = [], []
    for entry in sorted(diff.layers, key=lambda entry: entry.status == "renumbered"):
        lines = [None if layer is None else layer.line for layer in (entry.a, entry.b)]
        rows.append((entry.status, entry.layer.type, entry.layer, str(entry), *lines))
        number = page.layers.number(entry.layer)
        details.append(Detail(entry.layer.key, _blocks(page, entry), number, entry.status))
    heads = "status: tag chosen; operation: type; layer: layer 2; what differs: text 3; line before: count; "
    return Table(columns(heads + "line after: count"), rows, details)


def _blocks(page: Page, entry: LayerDiff) -> list[Block]:
    """Return the blocks that show the changes of a layer and its lines in both files."""
    blocks: list[Block] = []
    pairs = [(_what(change), _shown(change, change.old), _shown(change, change.new)) for change in entry.changes]
    if pairs:
        blocks.append(Pairs(pairs, "Before and after"))
    blocks += [Text(str(change.data), _what(change)) for change in entry.changes if change.data is not None]
    if entry.place:
        blocks.append(Text(entry.place, "Place"))
    for title, layer in (("Source before", entry.a), ("Source after", entry.b)):
        if layer is not None:
            blocks += page.excerpt(layer.file, layer.line, title=title)
    return blocks


def _shown(change: Change, value: object) -> str:
    return "see below" if change.data is not None and change.old is change.new is None else value_text(value)


def _chart(diff: Diff) -> Chart | None:
    """Return a chart of the number of layers that differ, by operation and status; None for a single operation."""
    counts = Counter((entry.layer.type, entry.status) for entry in diff.layers)
    totals = Counter(entry.layer.type for entry in diff.layers)
    if len(totals) < 2:
        return None
    types = [name for name, _ in totals.most_common(MOST_BARS)]
    present = [status for status in STATUSES if any(counts[name, status] for name in types)]
    title = f"Layers that differ, by operation{'' if len(totals) <= MOST_BARS else f' (the first {MOST_BARS})'}"
    charts = [bars(title, types, [counts[name, status] for name in types], axis="layers") for status in present]
    traces = []
    for status, chart in zip(present, charts, strict=True):
        texts = [label(f"{count} {name} {status}") for name, count in zip(types, chart.traces[0]["x"], strict=True)]
        own = {"name": status, "hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}
        traces.append({**chart.traces[0], **own, "marker": {"color": _COLORS[status]}})
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"}
    layout = {**charts[0].layout, "barmode": "stack", "showlegend": True, "legend": legend}
    return replace(charts[0], traces=traces, layout=layout, height=charts[0].height + 30, is_wide=True)
