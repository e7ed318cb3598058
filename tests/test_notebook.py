"""A notebook, run by nbconvert, shows each object that has a table as one table in HTML."""

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbconvert is not installed")
preprocessors = pytest.importorskip("nbconvert.preprocessors", reason="nbconvert is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

SETUP = """
import numpy as np, ovir
from ovir import opset13 as ops
from ovir.analysis.profile import Profile

def build(factor, name):
    x = ops.parameter([1, 4], "f32", name="x")
    state = ops.read_value(ops.constant(np.zeros((1, 4), "f4")), "state", "f32", [1, 4])
    total = ops.add(state, ops.multiply(x, factor, name="scaled"), name="total")
    return ovir.Model([ops.relu(total, name="act")], [x], name, sinks=[ops.assign(total, "state")])

model, other = build(2.0, "one"), build(3.0, "other")
compiled, inputs = ovir.compile_model(model), [np.ones((1, 4), "f4")]
request, watch, profile = compiled.create_infer_request(), ovir.Watch("nan"), Profile()
results = request.infer(inputs, listeners=[watch, profile])
broken = b'<net name="m" version="11"><layers><layer id="0" name="x" type="Nothing" version="opset1"/></layers></net>'
"""
SHOWN = {
    "model": ["state", "f32[1,4]"],
    "compiled": ["state", "f32[1,4]"],
    "model.layer('act')": ["total"],
    "model.layers": ["9 layers", "scaled", "Multiply"],
    "model.inputs": ["1 port", "x", "f32[1,4]"],
    "results": ["Result_8", "2 to 2"],
    "watch": ["0 layers", "nan"],
    "profile": ["ms", "Multiply", "scaled"],
    "ovir.compare(model, other)": ["beyond tolerance, first at Multiply", "first, largest</td>", "f32[1,4]"],
    "ovir.diff(model, other)": ["the models differ", "changed", "1 of 1 values differ"],
    "ovir.check(broken)": ["error", "OVIR", "Nothing"],
    "ovir.bisect(model, other)": ["beyond tolerance, first at Multiply", "scaled"],
    "ovir.precision(model, seconds=5)": ["must stay in f32", "Multiply"],
    "ovir.reduce(model, lambda path: int('\"Multiply' in open(path).read()))": ["reduced to", "operation"],
}
"""Expressions, each with words that its table has."""


@pytest.mark.slow
def test_a_notebook_shows_tables() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (SETUP, *SHOWN)])
    preprocessors.ExecutePreprocessor(timeout=120, kernel_name="python3").preprocess(notebook)
    for cell in notebook.cells[1:]:
        (output,) = cell.outputs
        html = output["data"]["text/html"]
        tables = {"watch": 0, "ovir.compare(model, other)": 2}  # nothing was watched; outputs and layers
        assert html.count("<table>") == tables.get(cell.source, 1), cell.source
        assert all(word in html for word in SHOWN[cell.source]), (cell.source, html)
