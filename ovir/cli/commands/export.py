"""``ovir export``: write the model as ONNX.

Examples:
  ovir export model.xml -o model.onnx                        in the default opset
  ovir export model.xml -o model.onnx --opset 17 --verify    and compare with onnxruntime

Variables become pairs of inputs and outputs. docs/onnx.md lists what is exported, and as what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ovir.cli.options.command import Command, Options
from ovir.cli.options.inputs import InputOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import OutputFile
from ovir.cli.terminal import output
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.diagnostics.wording import plural, readable
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.debugging.export_check import Verification
    from ovir.export.exported import Exported


def add_to(command: Command) -> None:
    command.add(ModelOptions("shape", "legacy-io"))
    command.option("-o, --output MODEL.onnx", "the file to write", OutputFile, required=True)
    command.option(
        "--opset N",
        "the version of ONNX's operators, from 17 on (default: one that onnxruntime has read for a year)",
        int,
    )
    command.option("--target onnxruntime:1.20", "take the newest opset that this release of onnxruntime reads")
    command.option("--external-data", "write the weights to MODEL.onnx.data (always above 2 GB)")
    command.option(
        "--contrib", "read weights of 4 and 8 bits with operators that onnxruntime contributes, and others may lack"
    )
    command.option(
        "--verify",
        "run the model and its export on the same inputs; the status is 1 if they differ by more than rounding",
    )
    command.add(InputOptions(folder=False))
    command.shared("json")


def run(options: Options) -> int:
    from ovir.export.export_onnx import export_onnx

    if not options.verify:
        options.refuse("needs --verify: an export reads no inputs", "--input", "--seed", "--save-inputs")
    model = options[ModelOptions].open()
    exported = export_onnx(
        model,
        options.output,
        options.opset,
        target=options.target,
        external_data=options.external_data,
        contrib=options.contrib,
    )
    verification = _verified(model, exported, options[InputOptions]) if options.verify else None
    if options.json:
        output.say_json(_as_json(exported, verification, options.output))
    else:
        _print(exported, verification, options.output)
    return output.DONE if verification is None or verification.agrees else output.WRONG


def _verified(model: Model, exported: Exported, options: InputOptions) -> Verification:
    from ovir.debugging.export_check import verify_export

    feeds = options.collect(model).feeds
    arrays: Sequence[Array] = [feeds[index] for index in range(len(model.inputs))]
    return verify_export(model, exported, arrays)


def _print(exported: Exported, verification: Verification | None, path: str) -> None:
    graph = exported.onnx.graph
    opset = exported.onnx.opset_imports[""]
    output.say(readable(f"{path}: opset {opset}, {plural(len(graph), 'node')}, checked by onnx.checker"))
    for variable, name in exported.state_inputs.items():
        after = exported.state_outputs.get(variable)
        said = f"output '{after}' has it afterwards" if after is not None else "nothing assigns it"
        output.print_message(readable(f"note: variable '{variable}' is input '{name}'; {said}"))
    if verification is None:
        return
    output.say()
    if verification.reason is not None:
        output.print_message(readable(f"warning: onnxruntime does not run the export: {verification.reason}"))
    beyond = "equal but for rounding" if verification.agrees else "beyond tolerance"
    output.say(f"compared with {verification.engine}: {'within tolerance' if verification.within else beyond}")
    if verification.rounding is not None:
        output.print_message(readable(f"note: {verification.rounding}"))
    rows = []
    for verified in verification.outputs:
        item = verified.found
        name = verified.name if not verified.call else f"{verified.name} (call {verified.call + 1})"
        if item.problem is not None:
            output.say(readable(f"{name}: {item.problem}"))
        mark = "" if item.within else "beyond"
        rows.append((mark, name, verified.element_type, item.max_abs, item.max_rel, item.beyond, item.lone_text))
    heads = ": tag; output: name; type: text; max abs: real; max rel: real; beyond: count; nonfinite: count"
    table = Table(columns(heads), rows, least=("type", "max rel"))
    output.say_table(table if any(x.found.lone for x in verification.outputs) else table.without(["nonfinite"]))


def _as_json(exported: Exported, verification: Verification | None, path: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "file": path,
        "opset": exported.onnx.opset_imports[""],
        "nodes": len(exported.onnx.graph),
        "inputs": exported.inputs,
        "outputs": exported.outputs,
        "variables": {
            name: {"input": exported.state_inputs.get(name), "output": exported.state_outputs.get(name)}
            for name in {**exported.state_inputs, **exported.state_outputs}
        },
    }
    if verification is not None:
        names = "engine", "within", "agrees", "outputs", "reason", "rounding"
        result["verification"] = json_fields(verification, *names)
    return result
