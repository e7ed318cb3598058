"""The folder of a finding: the model, its inputs, the expected outputs, a script that needs no ovir, and a report."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ovir.core.reading import read_text
from ovir.debugging.layerwise_run import ENDS
from ovir.fuzzing.device_map import version_of
from ovir.fuzzing.findings import Finding, Reduced
from ovir.fuzzing.targets import Compiler
from ovir.io.tensor_files import save_npz
from ovir.model import save_model
from ovir.ops.base.operator import Operator
from ovir.ops.base.specifications import specification_page
from ovir.system.files import write_text
from ovir.system.interrupts import uninterrupted


@dataclass(frozen=True)
class Origin:
    """The origin of a finding, as its folder records it."""

    against: str | Compiler
    description: str
    config: Mapping[str, str]
    timeout: float


def save_finding(folder: Path, finding: Finding, reduced: Reduced, origin: Origin) -> None:
    """Write a folder, which appears under its name when it is complete."""
    work = folder.with_name(f".{folder.name}.tmp")
    work.mkdir(parents=True, exist_ok=True)
    save_model(reduced.model, work / "model.xml")
    names = [port.layer.name for port in reduced.model.inputs]
    save_npz(work / "inputs.npz", dict(zip(names, reduced.inputs, strict=True)))
    save_npz(work / "expected.npz", {f"output{i}": np.asarray(x) for i, x in enumerate(reduced.fault.expected)})
    write_text(work / "repro.py", _script(finding, reduced, origin), "write the script")
    write_text(work / "report.md", finding.report, "write the report")
    with uninterrupted():
        work.rename(folder)


# --------------------------------------------------------------------------- the script


def _script(finding: Finding, reduced: Reduced, origin: Origin) -> str:
    against = origin.against
    if callable(against):
        start = f"from {against.__module__} import {against.__qualname__} as compiler\n{_CALL}"
    elif against.startswith("python:"):
        path, _, name = against.removeprefix("python:").rpartition(":")
        start = f"import runpy\n\ncompiler = runpy.run_path({str(Path(path).resolve())!r})[{name!r}]\n{_CALL}"
    else:
        start = _OPENVINO.format(
            device="CPU" if against.startswith("runtime:") else against.partition(":")[2] or "CPU",
            config=dict(origin.config),
        )
    title = f"{finding.kind}: {', '.join(finding.operations)} on {origin.description}"
    rtols = [tolerance.rtol for tolerance in reduced.fault.tolerances]
    return _SCRIPT.format(title=title, start=start, rtols=rtols, timeout=origin.timeout)


_SCRIPT = '''"""Shows a fault: {title}.

It exits with status 0 if the outputs are those of expected.npz, and with 1 if they are not, or if the model is refused.
A crash ends it with a signal, a hang after {timeout:g} seconds.
"""

import faulthandler
import sys
from pathlib import Path

import numpy as np

{start}
HERE = Path(__file__).resolve().parent
TOLERANCES = {rtols}
"""For each output: the error allowed, as a share of an element and the root mean square of all elements."""


def numbers(array, kind):
    """Return an array that an .npz holds as bits, where NumPy has numbers of its element type."""
    if kind in ("i4", "u4", "u2", "f4e2m1"):
        return array.view(np.uint8) & (3 if kind == "u2" else 15)
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else array


def problem(actual, expected, rtol):
    """Return what is wrong with an output, if anything is."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{{actual.dtype}}{{list(actual.shape)}} in place of {{expected.dtype}}{{list(expected.shape)}}"
    wrong = actual != expected
    if expected.dtype.kind == "f":
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        finite = b[np.isfinite(b)]
        typical = np.sqrt(np.mean(finite**2)) if finite.size else 0.0
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= rtol * (np.abs(b) + typical)
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | near)
    if not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    count = f"{{int(wrong.sum())}} of {{wrong.size}} elements"
    return f"{{count}}, at {{place}} {{actual[place]}} in place of {{expected[place]}}"


def main():
    faulthandler.dump_traceback_later({timeout:g}, exit=True)
    with np.load(HERE / "inputs.npz") as file:
        inputs = [file[name] for name in file.files]
    with np.load(HERE / "expected.npz") as file:
        expected = [numbers(file[name], name.rpartition("__")[2]) for name in file.files]
    status = 0
    for number, actual in enumerate(run(str(HERE / "model.xml"), inputs), 1):
        for index, (one, other) in enumerate(zip(actual, expected)):
            if (found := problem(one, other, TOLERANCES[index])) is not None:
                print(f"run {{number}}, output {{index}}: {{found}}")
                status = 1
    print("the outputs differ" if status else "the outputs are as expected")
    return status


if __name__ == "__main__":
    sys.exit(main())
'''
_OPENVINO = '''import openvino as ov

if not hasattr(ov, "Core"):
    import openvino.runtime as ov

DEVICE, CONFIG = {device!r}, {config!r}


def run(path, inputs):
    """Return the outputs of two runs."""
    request = ov.Core().compile_model(path, DEVICE, CONFIG).create_infer_request()
    for index, (port, array) in enumerate(zip(request.model_inputs, inputs)):
        if port.element_type == ov.Type.string:
            tensor = ov.Tensor(ov.Type.string, ov.Shape(array.shape))
            tensor.str_data = array
        else:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            if port.element_type.bitwidth < 8:
                data = packed(data, 8, port.element_type.bitwidth)
            tensor = ov.Tensor(port.element_type, ov.Shape(array.shape))
            if data.size:
                tensor = ov.Tensor(data, ov.Shape(array.shape), port.element_type)
        request.set_input_tensor(index, tensor)
    for _ in range(2):
        for state in request.query_state():
            state.reset()
        request.infer()
        yield [read(request.get_output_tensor(index)) for index in range(len(request.model_outputs))]


def packed(data, width, wanted):
    """Return numbers of ``width`` bits each as numbers of the wanted width, which have zeros in front or lose bits."""
    bits = np.unpackbits(data, bitorder="little").reshape(-1, width)
    bits = np.pad(bits, ((0, 0), (0, max(wanted - width, 0))))[:, :wanted]
    return np.packbits(bits, bitorder="little")


def read(tensor):
    if tensor.element_type == ov.Type.string:
        return tensor.str_data.copy()
    if tensor.element_type == ov.Type.bf16:
        return numbers(tensor.data.view(np.uint16), "bf16")
    if tensor.element_type.bitwidth < 8 and tensor.byte_size:
        found = packed(tensor.data.reshape(-1).view(np.uint8), tensor.element_type.bitwidth, 8)
        return found[: tensor.size].reshape(tuple(tensor.shape))
    return tensor.data.copy()

'''
_CALL = '''

def run(path, inputs):
    """Return the outputs of two runs."""
    for _ in range(2):
        yield [np.asarray(array) for array in compiler(path, inputs)]

'''


# --------------------------------------------------------------------------- the report


def report_of(finding: Finding, reduced: Reduced, origin: Origin) -> str:
    """Return a report that can be filed as it is."""
    return "\n".join(_report(finding, reduced, origin)) + "\n"


def _report(finding: Finding, reduced: Reduced, origin: Origin) -> Iterator[str]:
    fault = reduced.fault
    layers = [layer for layer in reduced.model.layers if layer.type not in ENDS]
    yield f"# {finding.kind.capitalize()}: {', '.join(finding.operations) or 'no operation'} on {origin.description}"
    yield ""
    yield f"{_WHAT[finding.kind]}: {fault.message}."
    yield ""
    yield f"Seen {finding.steadiness}: in one request, in new requests and after new compilations."
    if finding.unsteady:
        yield "It comes and goes, so `repro.py` may have to run several times."
    yield ""
    needs = "the compiler" if callable(origin.against) or origin.against.startswith("python:") else "openvino"
    yield f"`python repro.py` shows it with {needs} and NumPy alone: it runs `model.xml` on `inputs.npz`, and compares"
    yield "with `expected.npz`, which ovir has computed as the specification says."
    yield ""
    yield "## What is computed"
    yield ""
    yield "| layer | operation | attributes | inputs | outputs |"
    yield "|---|---|---|---|---|"
    for layer in layers:
        ports = [", ".join(f"`{port.type}`" for port in side) for side in (layer.inputs, layer.outputs)]
        values = ", ".join(f"{name}={value}" for name, value in layer.attributes.items())
        yield f"| {layer.name} | {version_of(layer)} | {values or '-'} | {ports[0]} | {ports[1]} |"
    sides = {"inputs": reduced.inputs, "expected outputs": fault.expected, "outputs": fault.actual}
    for title, arrays in sides.items():
        yield ""
        yield f"The {title}:"
        yield ""
        yield "```"
        yield from [np.array2string(np.asarray(x), threshold=_SHOWN) for x in arrays] or ["none"]
        yield "```"
    yield ""
    yield "## What the specification says"
    yield ""
    for kind in dict.fromkeys(type(layer.operator) for layer in layers if layer.operator is not None):
        page = specification_page(kind)
        yield f"- **{kind.type}-{kind.opset}**{f' ({page})' if page else ''}: {_summary(kind)}"
    yield ""
    yield "## Versions"
    yield ""
    config = ", ".join(f"{key}={value}" for key, value in origin.config.items())
    yield f"- {origin.description}" + (f", with {config}" if config else "")
    yield f"- NumPy {np.__version__}, Python {platform.python_version()}"
    yield f"- {platform.platform()}, {_processor()}"
    yield f"- random model {finding.number}: `ovir fuzz --seed {finding.number} --models 1`"


_SHOWN = 60
_WHAT = {
    "crash": "The process ends when the model is compiled, run or released",
    "hang": "The model is not compiled and run in time",
    "refusal": "A valid model is refused",
    "shape": "An output has another shape",
    "type": "An output has another element type",
    "values": "The values of an output are wrong",
    "second run": "A later run with the same inputs gives other outputs",
    "ovir": "ovir itself is at fault",
}


def _summary(kind: type[Operator]) -> str:
    """Return the first paragraph about an operation."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split())


def _processor() -> str:
    try:
        lines = read_text(Path("/proc/cpuinfo")).splitlines()
        found = next((line for line in lines if line.startswith("model name")), "")
    except OSError:
        found = ""
    return found.partition(":")[2].strip() or platform.processor() or platform.machine()
