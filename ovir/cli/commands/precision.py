"""``ovir precision``: find the layers that must stay in f32 on a device that computes in f16, bf16 or int8, or whose
weights cannot be stored in 4 bits.

Examples:
  ovir precision model.xml --to f16 --input inputs.npz
  ovir precision model.xml --to bf16 --samples 4 -o mixed.xml
  ovir precision model.xml --to int8 --samples 16 --tolerance 0.05
  ovir precision model.xml --to int4:asym:64 --inputs folder -o int4.xml

The device is emulated, so that none is needed. Real inputs give better answers than random ones.

exit status: 0 layers were found, or none is needed, 1 no choice of layers suffices, 2 nothing was tried
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovir.cli.options.command import Command, Options
from ovir.cli.options.inputs import InputSetOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import OutputFile, amount, raise_usage_error
from ovir.cli.terminal import output
from ovir.cli.terminal.progress import reported
from ovir.core.tables import cell_text
from ovir.diagnostics.wording import plural, readable
from ovir.model import Model, save_model

if TYPE_CHECKING:
    from ovir.debugging.precision import Precision


def add_to(command: Command) -> None:
    command.error_status = output.UNUSABLE  # status 1 would say that the model cannot be computed in this type
    command.add(ModelOptions("shape", "legacy-io"))
    command.option(
        "--to TYPE",
        "the type that the device computes in: f16, bf16 or int8; or one of weights alone, such as int4, int4:asym, "
        "int4:sym:64 (groups of 64) and int8:sym",
        required=True,
    )
    command.add(InputSetOptions())
    command.option(
        "--tolerance X",
        "the error that an output may have, as a share of its root mean square "
        "(default: 0.01 for f16, 0.05 for bf16, 0.1 for integers)",
        amount,
    )
    command.option(
        "--seconds N", "stop measuring single layers after about N seconds (default: 300)", amount, default=300.0
    )
    command.option(
        "-o, --output OUT.xml",
        "save the model: with marks that make OpenVINO compute these layers in f32, or with compressed weights",
        OutputFile,
    )
    command.shared("json")


def run(options: Options) -> int:
    from ovir.debugging.f32_layers import lost_marks
    from ovir.debugging.precision import precision
    from ovir.runtime.emulation import NARROW

    if options.output is not None and options.to == "int8":
        hint = "quantize the model with NNCF and give it the printed names as ignored_scope"
        raise_usage_error("-o marks layers for f16 and bf16; OpenVINO does not quantize models to int8 by itself", hint)
    sets = options[InputSetOptions]
    model = options[ModelOptions].open()
    inputs = sets.inputs_of(model)
    with reported("measuring layers", sets.note()) as update:
        found = precision(
            model,
            options.to,
            inputs,
            samples=sets.samples,
            seed=sets.seed or 0,
            tolerance=options.tolerance,
            seconds=options.seconds,
            progress=update,
        )
    lost = lost_marks(model, found.keep) if options.to in NARROW else {}
    if options.output is not None:
        _save(model, found, options.output, lost)
    if options.json:
        marks = [{"layer": key, "reason": reason} for key, reason in lost.items()]
        output.say_json({"model": model.path, "output": options.output, **found.to_dict(), "lost_marks": marks})
    else:
        _print(found)
    return output.DONE if found.within else output.WRONG


def _save(model: Model, found: Precision, path: str, lost: dict[str, str]) -> None:
    from ovir.debugging.f32_layers import with_f32_layers

    if found.choices:
        if not found.within:
            output.print_message("warning: the outputs of the saved model are beyond the tolerance")
        output.print_diagnostics(save_model(found.compressed(model), path))
        kept, narrow = (plural(count, "layer") for count in (len(found.keep), len(found.layers) - len(found.keep)))
        others = "" if found.to.startswith("int8") else ", and those of operations other than MatMul in int8"
        output.print_message(
            readable(f"{path}: weights of {narrow} in {found.to}, of {kept} in {found.kept_in}{others}")
        )
        return
    output.print_diagnostics(save_model(with_f32_layers(model, found.keep), path))
    output.print_message(readable(f"{path}: {plural(len(found.keep), 'layer')} marked to stay in f32"))
    for reason in dict.fromkeys(lost.values()):
        names = ", ".join(f"'{key}'" for key in lost if lost[key] == reason)
        output.print_message(readable(f"warning: OpenVINO's CPU plugin ignores the marks of {names}: {reason}"))


def _print(found: Precision) -> None:
    does = "has weights" if found.choices else "computes"
    title = f"error of the outputs if the layer alone {does} in {found.to}:"
    output.say_table(found.table(), title=title, limit=len(found.keep) + output.LIMIT, more="less sensitive layer")
    output.say()
    if found.choices:
        output.say_table(found.choices_table(), title=f"if the most sensitive layers have weights in {found.kept_in}:")
        output.say()
    sets = plural(found.samples, "set") + " of inputs"
    output.say_filled(
        f"all in {found.to}: error {cell_text('real', found.error_before)}, tolerance {found.tolerance:g}, {sets}"
    )
    if not found.within:
        output.say("no choice of layers keeps the outputs within the tolerance")
    elif not found.keep:
        output.say(f"no layer needs {found.kept_in}")
    if not found.keep:
        return
    output.say(f"{plural(len(found.keep), 'layer')} in {found.kept_in}: error {cell_text('real', found.error)}")
    output.say()
    for name in found.keep:
        output.say(name)
    output.say()
    output.say(found.ignored_scope)
