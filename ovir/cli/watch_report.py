"""Print what ``ovir run --watch`` has found."""

from __future__ import annotations

from ovir.cli.output import format_number, say, say_table
from ovir.debugging.watch import Watch, WatchedInput, WatchEvent
from ovir.diagnostics.wording import plural, readable

_EVENTS = 20
"""The table shows this many layers; JSON contains all of them."""
_MARGINS = 10
_CONTENTS = {"nan": "NaN", "inf": "infinity"}


def print_watch(watch: Watch) -> None:
    """Print the layers that made watched values, and those that are nearest to overflow."""
    watched = ", ".join(map(str, watch.conditions))
    say()
    for name, what in watch.inputs:
        say(readable(f"input '{name}' contains {_CONTENTS.get(what, f'values of {what}')}{_consequence(what)}"))
    if watch.events:
        head = ("layer", "operation", "what", ">value", "position", ">count", "inputs")
        say_table(head, map(_row, watch.events[:_EVENTS]), title=f"watched for {watched}:")
        if (more := len(watch.events) - _EVENTS) > 0:
            say(f"and {plural(more, 'layer')} more; --json has all")
    else:
        say(f"watched for {watched}: no {'other ' if watch.inputs else ''}layer makes such values")
    _print_margins(watch)


def _consequence(what: str) -> str:
    return "; layers that depend on it are not reported" if what == "nan" else ""


def _row(event: WatchEvent) -> tuple[str, ...]:
    where = f"[{','.join(map(str, event.position))}]" + (f" of call {event.call + 1}" if event.call else "")
    inputs = "; ".join(map(_input, event.inputs))
    what = event.what if event.inside is None else f"{event.what} in its {event.inside}"
    return event.layer, event.type, what, format_number(event.value), where, f"{event.count:,}", inputs


def _input(item: WatchedInput) -> str:
    ends = f"{format_number(item.minimum)}..{format_number(item.maximum)}"
    return f"{item.source} {ends}" + (f", {item.nonfinite:,} not finite" if item.nonfinite else "")


def _print_margins(watch: Watch) -> None:
    margins = watch.margins
    for name in dict.fromkeys(name for margin in margins for name in margin.margins):
        nearest = sorted(margins, key=lambda margin: margin.margins[name])[:_MARGINS]
        say()
        rows = [(m.layer, m.type, format_number(m.largest), format_number(m.margins[name])) for m in nearest]
        say_table(("layer", "operation", ">largest", ">margin"), rows, title=f"nearest to overflow in {name}:")
