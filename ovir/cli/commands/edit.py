"""``ovir edit``: change a model and save it: rename, reshape, set constants, preprocess inputs, fold, prune.

Examples:
  ovir edit model.xml --rename image=photo -o renamed.xml
  ovir edit model.xml --set-constant target=-1,128 --shape image=4,1,8,8 -o four.xml
  ovir edit model.xml --batch ? -o any.xml
  ovir edit model.xml --shape image=1,3,?,? --adapt -o any.xml
  ovir edit model.xml --fix-input sr=16000 --simplify -o simple.xml
  ovir edit model.xml --fold-constants --prune --strip-rt-info -o model.xml
  ovir edit model.xml --input-type u8 --input-layout NHWC --resize linear --mean 127.5 -o images.xml

Edits apply in the given order, then preprocessing, then --runtime or --opset. They are inferred together.
If one fails, nothing is written.
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from ovir.analysis.costs import changes_of, costs_of
from ovir.building.values import as_array
from ovir.cli.options.command import Command, Options
from ovir.cli.options.faulty_constants import constants_of_sizes
from ovir.cli.options.model import ModelOptions, about_followers, parse_shapes, split_input, type_in_file
from ovir.cli.options.preprocessing import PreprocessingOptions
from ovir.cli.options.values import FileName, OutputFile, amount, positive, raise_usage_error, share, split_known
from ovir.cli.terminal.output import DONE, listed, say, say_filled, say_saved
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import INTERNAL, OUT_OF_MEMORY, USAGE
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ModelError, NotFoundError, OvirError
from ovir.diagnostics.wording import did_you_mean, plural, readable
from ovir.editing.effect import bytes_of, contents_of, effect_of
from ovir.editing.keys import layer_named
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layers import Layer, Port
from ovir.graph.names import names_of_inputs, tensor_names
from ovir.inference.layer_weights import compression_of
from ovir.inference.pinned_sizes import pinned_sizes
from ovir.io.tensor_files import load_tensor, parse_literal, with_element_type
from ovir.ir.writing.compression import BF16, F16, Narrow
from ovir.ir.writing.save import prepare, write_model
from ovir.lowering.registry import LOWERED_FROM
from ovir.lowering.releases import IR_VERSION_11, as_release
from ovir.model import Model, read_model
from ovir.ops.infrastructure import Const
from ovir.system.progress import stage

Edits = Sequence[tuple[str, str]]
"""Options with their values, in the order in which they are given."""
Report = Callable[[], str]
"""A function that describes the effect of an edit, once the model is inferred."""


def rename(model: Model, text: str) -> Report:
    names = tensor_names(model)
    old, new = split_known("--rename", text, lambda name: name in names or layer_named(model, name) is not None)
    model.rename({old: new})
    return lambda: f"renamed '{old}' to '{new}'"


class Shapes(NamedTuple):
    """The shapes of inputs that ``--shape`` gives."""

    in_file: Mapping[Layer, PartialShape]
    """The shapes in the file of the inputs that have another one since it was read."""
    adapted: dict[Port, PartialShape] | None
    """The shapes that ``--adapt`` sets, all at once; None without it."""
    like: Model | None
    """The model of ``--like``."""


def shape(model: Model, text: str, shapes: Shapes) -> Report:
    ((index, wanted),) = parse_shapes(model, [text]).items()
    port = model.inputs[index]
    before = str(shapes.in_file.get(port.layer, port.shape))
    if shapes.adapted is None:
        model.reshape({index: wanted})
    else:
        shapes.adapted[port] = wanted
    return lambda: f"input '{port.any_name}': {before} -> {wanted}"


def adapt(model: Model, text: str, verify: bool, shapes: Shapes) -> Report:
    assert shapes.adapted is not None
    edit = model.reshape(shapes.adapted, adapt=True, verify=verify, like=shapes.like)
    return lambda: "\n".join(about_followers(edit, "--shape"))


def batch(model: Model, text: str, verify: bool) -> Report:
    """Apply ``4``, ``?``, or ``NAME=4`` for some inputs, with commas between them."""
    known = names_of_inputs(model).__contains__
    parts = dict(split_known("--batch", part, known) for part in text.split(",")) if "=" in text else text
    before = [str(type_in_file(port).shape) for port in model.inputs]
    lines = about_followers(model.set_batch(parts, verify=verify), "the batch")
    shapes = zip(model.inputs, before, [str(type_in_file(port).shape) for port in model.inputs], strict=True)
    moved = [f"input '{port.any_name}': {old} -> {new}" for port, old, new in shapes if old != new]
    return lambda: "\n".join((*moved, *lines))


def states_to_inputs(model: Model, text: str, verify: bool) -> Report:
    edit = model.states_to_inputs(verify=verify)
    return _about_states("{0} -> {1}", edit.relation["states"], *edit.notes, edit.verdict)


def inputs_to_states(model: Model, text: str, verify: bool) -> Report:
    """Apply ``past=present``, with commas between pairs, or the usual pairs if the text is empty."""
    known = names_of_inputs(model).__contains__
    pairs = dict(split_known("--inputs-to-states", part, known) for part in text.split(",")) if text else None
    edit = model.inputs_to_states(pairs, verify=verify)
    return _about_states("{1} -> {0}", edit.relation["states"], *edit.notes, edit.verdict)


def _about_states(form: str, states: Mapping[str, tuple[str, str | None]], *further: str) -> Report:
    ports = {name: f"input '{past}'" + (f", output '{new}'" if new else "") for name, (past, new) in states.items()}
    lines = [form.format(f"state '{name}'", text) for name, text in ports.items()]
    return lambda: "\n".join((*lines, *further))


def remove_output(model: Model, text: str) -> Report:
    before = {layer: layer.key for layer in model.walk()}
    gone = [before[layer] for layer in reversed(model.remove_output(text))]
    needed = f", and {plural(len(gone), 'layer')} that only it needed: {listed(gone)}" if gone else ""
    return lambda: f"removed the output '{text}'{needed}"


def add_output(model: Model, text: str) -> Report:
    added = model.add_outputs([tensor_key(model, tensor_names(model), text)])
    return lambda: "\n".join(f"output '{port.any_name}': {port.type}" for port in added)


def add_nms(model: Model, text: str) -> Report:
    """Apply ``boxes,scores`` with settings behind a colon, as in ``boxes,scores:iou=0.45,max=300``."""
    names, _, settings = text.rpartition(":") if _NMS.search(text) else (text, "", "")
    given = dict(part.split("=", 1) for part in settings.split(",") if part)
    boxes, comma, scores = names.partition(",")
    if not comma:
        raise_usage_error(f"--add-nms {text}: expected the names of boxes and scores, with a comma between them")
    known = tensor_names(model)
    tensors = [tensor_key(model, known, name) for name in (boxes, scores)]
    try:
        how = {{"max": "most"}.get(key, key): _NMS_TYPES[key](value) for key, value in given.items()}
    except argparse.ArgumentTypeError as error:
        raise_usage_error(f"--add-nms {text}: {error}")
    added = model.add_nms(*tensors, **how)
    return lambda: "\n".join(f"output '{port.any_name}': {port.type}" for port in added)


_NMS_TYPES: dict[str, Callable[[str], Any]] = {"iou": share, "score": amount, "max": positive, "form": str}
_NMS = re.compile(rf":({'|'.join(_NMS_TYPES)})=[^,:=]*(,({'|'.join(_NMS_TYPES)})=[^,:=]*)*$")


def set_constant(model: Model, text: str) -> Report:
    name, source = split_known("--set-constant", text, lambda name: layer_named(model, name) is not None)
    layer = model.layer(name)
    before = _with_values(layer)
    notes = _about_compression(layer)
    constant = model.set_constant(layer, _array(layer, source, f"--set-constant {text}"))
    return lambda: f"constant '{constant.name}': {before} -> {_with_values(constant)}{notes(constant)}"


def _with_values(layer: Layer) -> str:
    """Return the type of a constant, with its numbers if they are few."""
    if not layer.outputs:
        return ""
    tensor = layer.outputs[0].type
    count = tensor.shape.size()
    values = tensor.constant if count.is_static and count.lower <= _MOST_SHOWN else None
    return str(tensor) if values is None else f"{tensor} = {','.join(map(str, values.flat))}"


_MOST_SHOWN = 8
"""Numbers of a constant that are printed."""


def fix_input(model: Model, text: str, verify: bool) -> Report:
    name, source = split_known("--fix-input", text, names_of_inputs(model).__contains__)
    port = model.input(name)
    before = str(port.type)
    edit = model.fix_input(name, _array(port.layer, source, f"--fix-input {text}"), verify=verify)
    (constant,) = edit.layers
    return lambda: f"input '{port.any_name}': {before} -> constant {constant.outputs[0].type}\n{edit.verdict}"


def _about_compression(layer: Layer) -> Callable[[Layer], str]:
    """Return a function that makes a note: a constant with new data was stored differently or is still decompressed."""
    if not layer.outputs or (chain := constant_layers(layer)) is None:
        return lambda constant: ""
    stored, bytes_before = compression_of(layer.outputs[0]), sum(map(bytes_of, chain))
    last, before = _decompressed(layer), layer.outputs[0].element_type

    def notes(constant: Layer) -> str:
        kind = constant.outputs[0].element_type
        if stored not in (str(before), "computed"):
            size = f"{bytes_of(constant):,} instead of {bytes_before:,} bytes"
            return f"; it was stored as {stored}, and is stored as {kind} now: {size}"
        if kind != before and last is not layer:
            return f"; it was decompressed by later layers, which still apply to it: '{last.name}' has their result"
        return ""

    return notes


def _decompressed(layer: Layer) -> Layer:
    """Return the last of the layers that decompress a constant; itself if none does."""
    while len(layer.outputs) == 1 and len(layer.outputs[0].readers) == 1:
        reader = layer.outputs[0].readers[0].layer
        if reader.type == "Result" or constant_layers(reader) is None:
            break
        layer = reader
    return layer


def decompress(model: Model, text: str) -> Report:
    count = len(model.decompress())
    return lambda: f"decompressed {plural(count, 'constant')}"


def fold_constants(model: Model, text: str, verify: bool) -> Report:
    edit = model.fold_constants(verify=verify)
    lines = _folded(len(edit.folded), len(edit)) if edit.folded or not edit.changes else []
    lines += [f"{len(keys)} x {what}: {listed(keys)}" for what, keys in edit.changes.items()]
    return lambda: "\n".join([*lines, edit.verdict] if edit.folded or edit.changes else lines)


def _folded(layers: int, constants: int) -> list[str]:
    return [f"folded {plural(layers, 'layer')} into {plural(constants, 'constant')}"]


def simplify(model: Model, text: str, verify: bool) -> Report:
    edit = model.simplify(verify=verify)
    lines = [f"{len(keys)} x {what}: {listed(keys)}" for what, keys in edit.changes.items()]
    lines += _folded(len(edit.folded), len(edit)) if edit.folded else []
    return lambda: "\n".join((*lines, edit.verdict))


def runtime(model: Model, text: str) -> Report:
    return _lowered(model, text, f"OpenVINO {text}")


def opset(model: Model, text: str) -> Report:
    if not text.isdecimal():
        raise_usage_error(f"--opset {text}: expected the number of an opset, such as 8")
    return _lowered(model, int(text), f"opset{text}")


def _lowered(model: Model, target: str | int, title: str) -> Report:
    origins = Counter(str(layer.rt_info[LOWERED_FROM]) for layer in model.lower(target))
    if not origins:
        return lambda: f"{title} needs no layer to be rewritten"
    rewritten = ", ".join(f"{count} x {origin}" for origin, count in origins.items())
    return lambda: f"rewrote {plural(origins.total(), 'layer')} for {title}: {rewritten}"


def prune(model: Model, text: str) -> Report:
    removed = [layer.key for layer in model.prune()]
    names = f": {listed(removed)}" if removed else ""
    return lambda: f"removed {plural(len(removed), 'dead layer')}{names}"


def strip_rt_info(model: Model, text: str) -> Report:
    model.strip_rt_info()
    return lambda: "removed the runtime information"


def set_rt_info(model: Model, text: str) -> Report:
    """Apply ``group/entry=value``, or remove the entry if there is no value."""
    path, value = split_known("--rt-info", text, lambda name: model.has_rt_info(name.split("/")))
    keys = path.split("/")
    before = repr(str(model.get_rt_info(keys))) if model.has_rt_info(keys) else "nothing"
    if value:
        model.set_rt_info(value, keys)
        return lambda: f"{path}: {before} -> {value!r}"
    if before == "nothing":
        raise NotFoundError.usage(f"there is no runtime information '{path}' to remove", hint=_known_info(model, path))
    del model.rt_info[tuple(keys)]
    return lambda: f"removed {path}: {before}"


def _known_info(model: Model, path: str) -> str:
    """Return a list of the entries in the group of a path that does not exist."""
    keys = path.split("/")[:-1]
    group = model.get_rt_info(keys) if model.has_rt_info(keys) else model.rt_info
    names = [] if isinstance(group, str) else list(group)
    return did_you_mean(path.split("/")[-1], names) or f"there are {', '.join(names) or 'no entries'}"


def set_name(model: Model, text: str) -> Report:
    before, model.name = model.name, text
    return lambda: f"the model was named '{before}' and is named '{text}'"


def compress(to: Narrow, model: Model, text: str) -> Report:
    """Return no report: the writer of the file compresses weights."""
    return str


def _about_narrowed(before: Model, after: Model, to: Narrow) -> str:
    """Return how many constants the writer has stored in 16 bits."""
    counts = [
        sum(isinstance(layer.operator, Const) and layer.outputs[0].element_type == to.element_type for layer in layers)
        for layers in (before.walk(), after.walk())
    ]
    new = counts[1] - counts[0]
    if not new and counts[0]:
        return f"{plural(counts[0], 'constant')} of {to.element_type} already, and none of f32 or f64 to be stored so"
    if not new:
        return f"no constant is stored as {to.element_type}: none of f32 or f64 is large and exact enough"
    return f"{plural(new, 'constant')} of f32 and f64 stored as {to.element_type}"


# --------------------------------------------------------------------------- names


def tensor_key(model: Model, names: Container[str], text: str) -> str | tuple[str, int]:
    """Return the tensor that a text names: a name of a tensor or layer, or ``LAYER:1`` for the second output."""
    if text in names or layer_named(model, text):
        return text
    match = re.fullmatch(r"(.+):(\d{1,9})", text)
    return (match[1], int(match[2])) if match is not None and layer_named(model, match[1]) else text


# --------------------------------------------------------------------------- values


def _array(layer: Layer, source: str, text: str) -> Array:
    """Return the array of a file, or one that is written out, in the element type that the layer has.

    ``text`` is the whole option, for messages.
    """
    path, colon, key = source.partition(".npz:")
    if colon:
        return load_tensor(f"{path}.npz", key)
    tensor = layer.outputs[0].type if layer.outputs else None
    if source.lower().endswith((".npy", ".npz")) or tensor is None:
        array = load_tensor(source, wanted=layer.name)
        return array if tensor is None else with_element_type(array, tensor.element_type)
    try:
        return as_array(parse_literal(source, tensor.element_type, tensor.shape), tensor.element_type)[0]
    except ValueError as error:
        file = f"the file {source} is not a .npy or .npz; " if os.path.exists(source) else ""
        raise_usage_error(f"{text}: {error}", f"{file}values are written as 1,2,3 or [[1,2],[3,4]]")


class Edit(NamedTuple):
    """An option that edits the model."""

    spelled: str
    """The option, with what stands for its value in the help."""
    help: str
    apply: Any
    is_proven: bool = False
    """Whether the edit proves itself; ``apply`` then takes whether it should."""
    is_optional: bool = False
    """Whether the option may be given without its value."""

    @property
    def option(self) -> str:
        return self.spelled.split()[0]


COMPRESS = {
    Edit(f"--compress-to-{name}", f"write weights of f32 and f64 as {to.element_type}", partial(compress, to)): to
    for name, to in (("fp16", F16), ("bf16", BF16))
}
DECOMPRESS = Edit("--decompress", "replace compressed weights by the decompressed numbers", decompress)
_ADAPTING = ("--adapt", "")
_REWRITING = RUNTIME, OPSET = "--runtime", "--opset"
EDITS = (
    Edit("--rename OLD=NEW", "rename a layer, a tensor, or both where they share the name", rename),
    Edit("--shape NAME=1,3,?,2..5", "give an input another shape", shape),
    Edit("--adapt", "let constants that hold an old size follow --shape", adapt, is_proven=True),
    Edit("--batch N", "another number of items: 4, ? for any, or NAME=4 for some inputs", batch, is_proven=True),
    Edit("--states-to-inputs", "make states inputs and outputs", states_to_inputs, is_proven=True),
    Edit(
        "--inputs-to-states PAST=PRESENT",
        "make inputs and outputs states: past=present,...; without a value the usual pairs",
        inputs_to_states,
        is_proven=True,
        is_optional=True,
    ),
    Edit("--add-output NAME", "make a tensor an output: a name, or LAYER:1 for a second output", add_output),
    Edit("--remove-output NAME", "remove an output, and the layers that only it needs", remove_output),
    Edit(
        "--add-nms BOXES,SCORES",
        "suppress boxes that overlap: BOXES,SCORES[:iou=0.45,score=0.25,max=300,form=centers]",
        add_nms,
    ),
    Edit(
        "--fix-input NAME=VALUE",
        "make a constant of an input, which leaves the model: NAME=16000, or as for --set-constant",
        fix_input,
        is_proven=True,
    ),
    Edit(
        "--set-constant NAME=VALUE",
        "give a constant other data: NAME=file.npy, NAME=file.npz:key, NAME=1,2,3 or NAME=[[1,2],[3,4]]",
        set_constant,
    ),
    Edit(
        "--fold-constants",
        "compute what is known before a run, with the branch of an If and loops that run once; weights stay compressed",
        fold_constants,
        is_proven=True,
    ),
    Edit(
        "--simplify",
        "fold constants, and leave out layers that have no effect or equal others",
        simplify,
        is_proven=True,
    ),
    Edit(f"{RUNTIME} RELEASE", "rewrite operations that this OpenVINO release, such as 2022.3, does not know", runtime),
    Edit(f"{OPSET} NUMBER", "rewrite operations that are newer than an opset, such as 8", opset),
    Edit("--prune", "remove dead layers", prune),
    Edit("--strip-rt-info", "remove all runtime information", strip_rt_info),
    Edit(
        "--rt-info PATH=VALUE", "set runtime information: model_info/labels=cat; nothing after = removes", set_rt_info
    ),
    Edit("--name NAME", "rename the model", set_name),
)
_BY_OPTION = {edit.option: edit for edit in (*EDITS, *COMPRESS, DECOMPRESS)}


class _Append(argparse.Action):
    """Appends an edit to one list, because edits apply in the given order."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given = (self.option_strings[0], values if isinstance(values, str) else "")
        namespace.edits = [*(namespace.edits or []), given]


def add_to(command: Command) -> None:
    command.add(ModelOptions("no-weights"))
    command.option("-o, --output OUT.xml", "where to save the model; may be the model itself", OutputFile)
    command.option(
        "--no-verify",
        "leave out the proof, on random inputs, that the result of --adapt, --batch, --states-to-inputs, "
        "--inputs-to-states, --fix-input, --fold-constants or --simplify computes what the model computes",
    )
    command.option(
        "--like OTHER.xml",
        "with --adapt: an export of the same model for other shapes, in which the results must be equal",
        FileName,
    )
    command.option("--dry-run", "report what the edits do, but write nothing")
    edits = command.parser.add_argument_group("edits, which may be repeated")
    weights = edits.add_mutually_exclusive_group()
    for edit in (*EDITS, *COMPRESS, DECOMPRESS):
        number = 0 if edit.spelled == edit.option else "?" if edit.is_optional else None
        group = edits if edit in EDITS else weights
        command.option(edit.spelled, edit.help, group=group, action=_Append, dest="edits", default=[], nargs=number)
    command.add(PreprocessingOptions())
    command.may_replace = "path"
    command.shared("json")


def run(options: Options) -> int:
    source, edits = options[ModelOptions], _with_adapt_last(options.edits)
    if options.output is None and not options.dry_run:
        raise_usage_error("there is no file to write", "name it with -o OUT.xml, or try the edits with --dry-run")
    if source.no_weights and not options.dry_run:
        raise_usage_error("without weights, the result cannot be saved", "--dry-run says what the edits do")
    if options.like is not None and _ADAPTING not in edits:
        raise_usage_error("--like needs --adapt, which uses the other export")
    model, own = _opened(source, edits)
    like = None if options.like is None else read_model(options.like)
    keys, before = [layer.key for layer in model.walk()] if options.json else [], costs_of(model)
    contents = contents_of(model)
    with stage("editing"):
        shapes = Shapes(own, {} if _ADAPTING in edits else None, like)
        done = _apply(model, edits, options[PreprocessingOptions], shapes, verify=not options.no_verify)
    path = None if options.dry_run else options.output
    compress_to = next((COMPRESS[e] for option, _ in edits if (e := _BY_OPTION[option]) in COMPRESS), None)
    version = _ir_version(edits)
    with _named_release(edits, options[PreprocessingOptions]):
        if path is None:
            written, warnings = prepare(model, compress_to, version)
        else:
            written, warnings = write_model(model, path, compress_to, Model, version)
    if any(option == "--shape" for option, _ in edits):
        warnings = [*warnings, *pinned_sizes(model)]
    if compress_to is not None:
        text = _about_narrowed(model, written, compress_to)
        done = [edit._replace(result=text) if _BY_OPTION.get(edit.option) in COMPRESS else edit for edit in done]
    after = costs_of(written)
    effect = effect_of(contents, contents_of(model), written)
    more = {"costs": {"before": before.to_dict(), "after": after.to_dict()}, "effect": effect.to_dict()}
    if say_saved(options.json, written, path, keys, warnings, edits=[edit._asdict() for edit in done], **more):
        return DONE
    for edit in done:
        for line in edit.result.splitlines():
            say_filled(readable(line))
    say_filled(str(effect))
    if changes := changes_of(before, after, with_weights=False):
        say_filled(changes)
    layers, all_layers = len(written.layers), len(list(written.walk()))
    inside = f" and {all_layers - layers:,} in bodies" if all_layers > layers else ""
    ports = f"{plural(len(written.inputs), 'input')}, {plural(len(written.outputs), 'output')}"
    summary = f"{path}: {plural(layers, 'layer')}{inside}, {ports}"
    say("nothing is written (--dry-run)" if path is None else readable(summary))
    return DONE


def _with_adapt_last(edits: Edits) -> Edits:
    """Return the edits with ``--adapt`` once, behind the shapes, which it sets all at once."""
    if _ADAPTING not in edits:
        return edits
    others = [edit for edit in edits if edit != _ADAPTING]
    last = max((i for i, (option, _) in enumerate(others) if option == "--shape"), default=None)
    if last is None:
        raise_usage_error("--adapt needs --shape, which constants can follow")
    return [*others[: last + 1], _ADAPTING, *others[last + 1 :]]


def _opened(source: ModelOptions, edits: Edits) -> tuple[Model, dict[Layer, PartialShape]]:
    """Return the model, and the shapes that its inputs have in the file where the first edits give them others.

    If the file does not fit its own shapes, it is inferred in those that the first edits give, and errors are about
    these.
    """
    texts = [text for option, text in takewhile(lambda edit: edit[0] == "--shape", edits)]
    own: dict[Layer, PartialShape] = {}

    def shapes(model: Model) -> dict[int, PartialShape]:
        found = parse_shapes(model, texts)
        own.update((model.inputs[i].layer, type_in_file(model.inputs[i]).shape) for i in found)
        return found

    try:
        return source.read(), own
    except ModelError as error:
        if not texts:
            if any(option == "--batch" for option, _ in edits):
                raise ModelError(*(replace(d, hint=d.hint or _OWN_SHAPES) for d in error.diagnostics)) from None
            raise
    return source.read(shapes), own


_OWN_SHAPES = "--batch starts from shapes that fit the model: give them before it, with --shape"


def _ir_version(edits: Edits) -> int:
    """Return the version of the file: the newest that the release of the last ``--runtime`` or ``--opset`` reads."""
    targets = [as_release(int(text) if option == OPSET else text) for option, text in edits if option in _REWRITING]
    return 10 if targets and targets[-1] < IR_VERSION_11 else 11


@contextmanager
def _named_release(edits: Edits, preprocessing: PreprocessingOptions) -> Iterator[None]:
    """Add to an error about a file the edit that asks for its version, and how a resized image gets a size."""
    try:
        yield
    except ModelError as error:
        if release := [f"{option} {text}" for option, text in edits if option in _REWRITING]:
            error.add_note(f"  hint: this follows from {release[-1]}")
        if any(":" not in text for text in preprocessing.resize):
            error.add_note("  hint: an image that is resized has any size, unless it is given: --resize linear:HxW")
        raise


def _hint(model: Model, error: Diagnostic, edits: Edits, option: str, value: str) -> str:
    """Return a hint that names the cause of an error: the edit that failed, or all edits if their result fails."""
    if error.code.startswith("OVIR5") or error.code in (OUT_OF_MEMORY.id, INTERNAL.id):
        return ""  # the weights, the machine or ovir are at fault
    if not option and len(edits) == 1:
        option, value = edits[0]
    cause = f"{option} {value}".rstrip() if option else "the edits together"
    found = "" if cause in error.message else f"this follows from {cause}; "
    if error.code == USAGE.id:
        return found
    if constants := constants_of_sizes(model, error):
        found += f"the layer takes sizes or axes from {constants}; "
    if _ADAPTING not in edits and any(given == "--shape" for given, _ in edits):
        found += "--adapt lets constants follow --shape; "
    return found


def _sized_inputs(model: Model, option: str, value: str) -> list[Port]:
    """Return the inputs to which an edit gives sizes."""
    if option == "--shape":
        return [model.inputs[split_input(model, option, value)[0]]]
    if option == "--batch":
        names = [part.rpartition("=")[0] for part in value.split(",")]
        return [model.input(name) for name in names] if any(names) else list(model.inputs)
    return []


class Done(NamedTuple):
    """An edit that has been applied, with a description of its effect."""

    option: str
    value: str
    result: str


def _apply(
    model: Model, edits: Edits, preprocessing: PreprocessingOptions, shapes: Shapes, *, verify: bool
) -> list[Done]:
    """Apply the edits as one: the preprocessing after the others, and the rewriting for a release at last, so that it
    sees all that they add."""
    reports: list[tuple[str, str, Report]] = []
    option, value = "", ""
    sized: set[tuple[str, Layer]] = set()

    def apply(wanted: Iterable[tuple[str, str]]) -> None:
        nonlocal option, value
        for option, value in wanted:
            edit = _BY_OPTION[option]
            for port in _sized_inputs(model, option, value):
                if (option, port.layer) in sized:
                    raise_usage_error(f"{option} {value}: input '{port.any_name}' is given twice")
                sized.add((option, port.layer))
            how: tuple[Any, ...] = (verify,) if edit.is_proven else ()
            how = (*how, shapes) if edit.apply in (shape, adapt) else how
            reports.append((option, value, edit.apply(model, value, *how)))

    try:
        with model.editing():
            apply(edit for edit in edits if edit[0] not in _REWRITING)
            option, value = "preprocessing", ""
            for name, text in preprocessing.apply(model):
                reports.append((option, name, partial(str, text)))
            apply(edit for edit in edits if edit[0] in _REWRITING)
            option = ""
    except OvirError as error:
        error.add_note(readable(f"  hint: {_hint(model, error.diagnostic, edits, option, value)}nothing is written"))
        raise
    return [Done(option, value, report()) for option, value, report in reports]
