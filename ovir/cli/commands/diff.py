"""``ovir diff``: compare two models: layers, attributes, constants, connections, inputs and outputs; or the
findings in two fuzz.json.

Examples:
  ovir diff before.xml after.xml
  ovir diff before.xml after.xml --ignore-names --json
  ovir diff f32.xml f16.xml --rtol 1e-3 --atol 1e-7
  ovir diff old-driver/fuzz.json new-driver/fuzz.json

exit status: 0 both are equal, 1 they differ, 2 wrong usage, a file that cannot be read, or maps that share no cell
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ovir.analysis.costs import changes_of, costs_of
from ovir.analysis.diff import Diff, LayerDiff, diff
from ovir.cli.options.command import Command, Options
from ovir.cli.options.model import read_topology
from ovir.cli.options.values import FileName, amount, positive
from ovir.cli.terminal.output import DONE, LIMIT, UNUSABLE, WRONG, print_message, say, say_filled, say_json, say_table
from ovir.diagnostics.errors import InputError, ModelError, ReadError
from ovir.diagnostics.wording import plural, readable
from ovir.model import read_model


def add_to(command: Command) -> None:
    command.argument("a", "A.xml", "the first model; weights come from its .bin", FileName)
    command.argument("b", "B.xml", "the second model", FileName)
    command.option("--weights-a FILE", "the weights of the first model", FileName)
    command.option("--weights-b FILE", "the weights of the second model", FileName)
    command.option("--ignore-names", "names of layers, tensors and the model alone are not a difference")
    for name in ("rtol", "atol"):
        kind = "relative" if name == "rtol" else "absolute"
        text = f"the {kind} tolerance for the values of constants (default 0)"
        command.option(f"--{name} X", text, amount, default=0.0)
    shown = command.under(None, exclusive=True)
    shown("--limit N", f"show N layers (default {LIMIT})", positive, default=LIMIT)
    shown("--all", "show all layers")
    command.shared("no-weights", "extension", "legacy-io", "json", "html")


def run(options: Options) -> int:
    if options.a.endswith(".json") or options.b.endswith(".json"):
        return _run_on_maps(options)
    if options.no_weights:
        options.refuse("and --no-weights exclude each other", "--weights-a", "--weights-b")
    try:
        a, b = (
            read_topology(path, legacy_io=options.legacy_io)
            if options.no_weights
            else read_model(path, weights, legacy_io=options.legacy_io)
            for path, weights in ((options.a, options.weights_a), (options.b, options.weights_b))
        )
    except (ReadError, ModelError) as error:  # nobody knows whether the files differ
        print_message(str(error))
        return UNUSABLE
    differences = diff(a, b, ignore_names=options.ignore_names, rtol=options.rtol, atol=options.atol)
    if options.no_weights:
        differences.notes.append("constants are not compared, only their types and shapes (--no-weights)")
    costs = costs_of(a), costs_of(b)
    if changes := changes_of(*costs):
        differences.notes.append(f"in all, {changes}")
    if options.json:
        say_json({**differences.to_dict(), "costs": dict(zip("ab", (each.to_dict() for each in costs), strict=True))})
    else:
        for line in _lines(differences, None if options.all else options.limit):
            say_filled(line)
    if options.html is not None:
        from ovir.cli.options.report import write_html
        from ovir.reports.diff_page import diff_page

        write_html(options.html, lambda: diff_page(differences), options.command_line)
    return WRONG if differences else DONE


def _run_on_maps(options: Options) -> int:
    """Compare what ``ovir fuzz`` has found on two devices."""
    from ovir.fuzzing.device_map import diff_maps  # which most calls do not need

    of_models = ("--weights-a", "--weights-b", "--ignore-names", "--rtol", "--atol", "--no-weights", "--legacy-io")
    options.refuse("compares models, not the maps of devices", *of_models, "--extension", "--html")
    try:
        found = diff_maps(options.a, options.b)
    except InputError as error:  # nobody knows whether the maps differ
        print_message(str(error))
        return UNUSABLE
    if options.json:
        say_json(asdict(found))
    else:
        say(readable(f"A: {found.a}"))
        say(readable(f"B: {found.b}"))
        limit = None if options.all else options.limit
        if found:
            say_table(found.table(limit))
            for line in _rest(len(found.changes), limit, "cell"):
                say(line)
        say(str(found))
    return WRONG if found else DONE if found.equal else UNUSABLE


def _lines(found: Diff, limit: int | None) -> Iterator[str]:
    """Yield the lines for people."""
    yield str(found)
    for note in found.notes:
        yield readable(f"note: {note}")
    if found.model:
        yield ""
        for change in found.model[:limit]:
            yield readable(f"model: {change}")
        yield from _rest(len(found.model), limit, "difference")
    items = _grouped([entry for entry in found.layers if entry.status != "renumbered"])
    if items:
        yield ""
        for entries in items[:limit]:
            yield from _layer_lines(entries)
        yield from _rest(len(items), limit, "layer")
    if found.renumbered:
        yield ""
        yield from _renumbered(found.renumbered, limit)
    if found.affected:
        yield ""
        for item in found.affected[:limit]:
            output = f" output {item.output}" if len(item.b.outputs) > 1 else ""
            yield readable(f"affected {item.b.type} '{item.b.key}'{output}: {item.old} -> {item.new}")
        yield from _rest(len(found.affected), limit, "output")


def _rest(count: int, limit: int | None, noun: str) -> Iterator[str]:
    if limit is not None and count > limit:
        yield f"and {plural(count - limit, f'more {noun}')}; --all shows all"


def _renumbered(entries: list[LayerDiff], limit: int | None) -> Iterator[str]:
    """Yield a line that counts the layers which only have another automatic name; without a limit, all of them."""
    if limit is None:
        for entry in entries:
            yield from _layer_lines([entry])
        return
    first = entries[0].changes[0]
    text = f"only the automatic names of {plural(len(entries), 'layer')} differ, as in {first.old} -> {first.new}"
    yield readable(f"renumbered: {text}; --all lists them")


def _grouped(layers: list[LayerDiff]) -> list[list[LayerDiff]]:
    """Return the entries in an order that has the layers of a moved subgraph together, where its first layer is."""
    items: list[list[LayerDiff]] = []
    of_group: dict[int, list[LayerDiff]] = {}
    for entry in layers:
        if entry.group is not None and entry.group in of_group:
            of_group[entry.group].append(entry)
            continue
        items.append([entry])
        if entry.group is not None:
            of_group[entry.group] = items[-1]
    return items


def _layer_lines(entries: list[LayerDiff]) -> Iterator[str]:
    """Yield the lines of one layer, or of one moved subgraph."""
    first = entries[0]
    if len(entries) > 1:
        yield readable(f"moved    {plural(len(entries), 'layer')}, from '{first.layer.key}' on")
    for entry in entries:
        if len(entries) > 1 and not entry.changes:
            continue
        changes = list(map(str, entry.changes))
        head = f"{entry.status:8} {entry.layer.type} '{entry.layer.key}'"
        if entry.status in ("added", "removed"):
            yield readable(f"{head} {entry.place}".rstrip())
        elif len(changes) == 1:
            yield readable(f"{head}: {changes[0]}")
        else:
            yield readable(head)
        if len(changes) > 1:
            yield from (readable(f"         {change}") for change in changes)
