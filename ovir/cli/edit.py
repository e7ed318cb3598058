"""``ovir edit``: change a model and save it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from ovir.cli import edit_steps
from ovir.cli.arguments import add_command, add_json, add_model, raise_usage_error
from ovir.cli.causes import constants_of_sizes
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.output import print_diagnostics, say, say_json
from ovir.cli.outputs import output_file
from ovir.cli.saved import saved_as_json
from ovir.cli.status import DONE
from ovir.core.progress import stage
from ovir.diagnostics.codes import INTERNAL, OUT_OF_MEMORY, USAGE
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import OvirError
from ovir.diagnostics.wording import plural, readable
from ovir.ir.writing.save import write_model
from ovir.model import Model, read_model


class Edit(NamedTuple):
    """An option that edits the model."""

    option: str
    metavar: str | None
    help: str
    apply: Any

    @property
    def has_value(self) -> bool:
        return self.metavar is not None


COMPRESS = Edit("--compress-to-fp16", None, "write weights of f32 and f64 as f16", edit_steps.compress)
DECOMPRESS = Edit("--decompress", None, "replace compressed weights by the decompressed numbers", edit_steps.decompress)
EDITS = (
    Edit("--rename", "OLD=NEW", "rename a layer, a tensor, or both where they share the name", edit_steps.rename),
    Edit("--shape", "NAME=1,3,?,2..5", "give an input another shape", edit_steps.shape),
    Edit(
        "--add-output", "NAME", "make a tensor an output: a name, or LAYER:1 for a second output", edit_steps.add_output
    ),
    Edit(
        "--set-constant",
        "NAME=VALUE",
        "give a constant other data: NAME=file.npy, NAME=file.npz:key, NAME=1,2,3 or NAME=[[1,2],[3,4]]",
        edit_steps.set_constant,
    ),
    Edit(
        "--fold-constants",
        None,
        "compute what is known before a run; weights stay compressed",
        edit_steps.fold_constants,
    ),
    Edit("--prune", None, "remove dead layers", edit_steps.prune),
    Edit("--strip-rt-info", None, "remove all runtime information", edit_steps.strip_rt_info),
    Edit("--name", "NAME", "rename the model", edit_steps.set_name),
)
_BY_OPTION = {edit.option: edit for edit in (*EDITS, COMPRESS, DECOMPRESS)}


class _Append(argparse.Action):
    """Appends an edit to one list, because edits apply in the order in which they are given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given = (self.option_strings[0], values if isinstance(values, str) else "")
        namespace.edits = [*(namespace.edits or []), given]


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "edit",
        run,
        "change a model and save it: rename, reshape, set constants, add outputs, fold, prune",
        "  ovir edit model.xml --rename image=photo -o renamed.xml\n"
        "  ovir edit model.xml --set-constant target=-1,128 --shape image=4,1,8,8 -o four.xml\n"
        "  ovir edit model.xml --fold-constants --prune --strip-rt-info -o model.xml\n"
        "\nEdits apply in the given order, and are inferred together. If one fails, nothing is written.\n",
    )
    add_model(parser)
    add_extension(parser)
    parser.add_argument(
        "-o", "--output", type=output_file, metavar="OUT.xml", help="where to save the model; may be the model itself"
    )
    parser.add_argument("--dry-run", action="store_true", help="report what the edits do, but write nothing")
    add_json(parser)
    edits = parser.add_argument_group("edits, which may be repeated")
    for edit in EDITS:
        _add(edits, edit)
    weights = edits.add_mutually_exclusive_group()
    for edit in (COMPRESS, DECOMPRESS):
        _add(weights, edit)
    parser.set_defaults(edits=[], may_replace_model=True)


def _add(group: Any, edit: Edit) -> None:
    values = {"metavar": edit.metavar} if edit.has_value else {"nargs": 0}
    group.add_argument(edit.option, action=_Append, dest="edits", help=edit.help, **values)


def run(arguments: argparse.Namespace) -> int:
    load_extensions(arguments.extension)
    if arguments.output is None and not arguments.dry_run:
        raise_usage_error("there is no file to write", "name it with -o OUT.xml, or try the edits with --dry-run")
    model = read_model(arguments.model, arguments.weights)
    keys = dict.fromkeys(layer.key for layer in model.walk()) if arguments.json else {}
    with stage("editing"):
        done = _apply(model, arguments.edits)
    path = None if arguments.dry_run else arguments.output
    written = model
    warnings: list[Diagnostic] = []
    if path is not None:
        is_compressed = any(option == COMPRESS.option for option, _ in arguments.edits)
        written, warnings = write_model(model, path, is_compressed, Model)
    if arguments.json:
        edits = [{"option": edit.option, "value": edit.value, "result": edit.result} for edit in done]
        diagnostics = [found.to_dict() for found in warnings]
        say_json({**saved_as_json(written, path, keys), "edits": edits, "diagnostics": diagnostics})
        return DONE
    print_diagnostics(warnings)
    for edit in done:
        for line in edit.result.splitlines():
            say(readable(line))
    counts = (len(written.layers), "layer"), (len(written.inputs), "input"), (len(written.outputs), "output")
    summary = f"{path}: {', '.join(plural(*count) for count in counts)}"
    say("nothing is written (--dry-run)" if path is None else readable(summary))
    return DONE


def _hint(model: Model, error: Diagnostic, edits: Sequence[tuple[str, str]], option: str, value: str) -> str:
    """Return what an error follows from: the edit that failed, or all of them where their result fails."""
    if error.code.startswith("OVIR5") or error.code in (OUT_OF_MEMORY.id, INTERNAL.id):
        return ""  # the weights, the machine or ovir are at fault
    if not option and len(edits) == 1:
        option, value = edits[0]
    cause = f"{option} {value}".rstrip() if option else "the edits together"
    found = "" if cause in error.message else f"this follows from {cause}; "
    if error.code != USAGE.id and (constants := constants_of_sizes(model, error)):
        found += f"the layer takes sizes or axes from {constants}; "
    return found


class Done(NamedTuple):
    """An edit that has been applied, with what it has done in words."""

    option: str
    value: str
    result: str


def _apply(model: Model, edits: Sequence[tuple[str, str]]) -> list[Done]:
    """Apply the edits as one."""
    reports = []
    option, value = "", ""
    try:
        with model.editing():
            for option, value in edits:
                reports.append(_BY_OPTION[option].apply(model, value))
            option = ""
    except OvirError as error:
        error.add_note(readable(f"  hint: {_hint(model, error.diagnostic, edits, option, value)}nothing is written"))
        raise
    return [Done(*edit, report()) for edit, report in zip(edits, reports, strict=True)]
