"""What the report of each command says."""

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.profile import Profile, RunTimes
from ovir.analysis.summary import provenance, summarize
from ovir.checks.recovering import read_recovering
from ovir.cli.main import main
from ovir.core.tables import Table, columns
from ovir.debugging.watch import Watch
from ovir.fuzzing.device_map import Cell
from ovir.fuzzing.findings import Finding
from ovir.fuzzing.fuzz import Fuzzing
from ovir.ir.executed import ExecutedLayer, Execution
from ovir.lowering.releases import oldest_release
from ovir.reports.charts import Chart
from ovir.reports.check_page import check_page
from ovir.reports.compare_page import compare_page
from ovir.reports.diff_page import diff_page
from ovir.reports.fuzz_page import fuzz_page
from ovir.reports.layers import LayerIndex
from ovir.reports.page import Detail, Excerpt, Explanation, Link, Markdown, Page, Pairs, Section, Text
from ovir.reports.ran import Ran
from ovir.reports.run_page import run_page
from ovir.reports.show_page import Shown, show_page
from ovir.reports.writing import to_data

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
DIGITS, LOOP = EXAMPLES / "digits.xml", EXAMPLES / "dynamic_shapes.xml"


def section(page: Page, title: str) -> Section:
    (found,) = (part for part in page.sections if part.title == title)
    return found


def table(page: Page, title: str) -> Table:
    return next(block for block in section(page, title).blocks if isinstance(block, Table))


def charts(page: Page, title: str) -> list[str]:
    return [block.title for block in section(page, title).blocks if isinstance(block, Chart)]


def figures(page: Page) -> dict[str, str]:
    return {figure.label: figure.value for figure in page.figures}


def column(found: Table, name: str) -> list[object]:
    place = [head.name for head in found.columns].index(name)
    return [row[place] for row in found.rows]


def detail(found: Table, row: int) -> Detail:
    assert found.details is not None
    shown = found.details[row]
    assert shown is not None
    return shown


# --------------------------------------------------------------------------- layers


def test_layers_link_to_the_layers_that_they_read() -> None:
    model = ovir.read_model(DIGITS)
    layers = LayerIndex()
    layers.add(model)
    records = layers.to_data()["records"]
    assert [record[1] for record in records] == [layer.key for layer in model.walk()]
    for layer, record in zip(model.walk(), records, strict=True):
        sources = [records[number][1] for number, _ in record[6]]
        assert sources == [port.source.layer.key for port in layer.inputs if port.source is not None]
    assert layers.find("conv2") == layers.number(model.layer("conv2"))
    assert layers.find("nothing") is None


def test_layers_that_are_left_out_are_named() -> None:
    model = ovir.read_model(DIGITS)
    layers = LayerIndex()
    layers.add(model, only=[model.layer("relu1")])
    ((*_, inputs, outputs, _),) = layers.to_data()["records"]
    source = model.layer("relu1").inputs[0].source
    assert source is not None
    assert inputs == [[source.layer.key, 0]]
    assert outputs == [str(source.type)]


# --------------------------------------------------------------------------- check


def test_check_of_a_broken_file() -> None:
    path = str(EXAMPLES / "broken" / "wrong_declared_shape.xml")
    found = ovir.check(path)
    page = check_page([path], found)
    assert (page.subject, page.verdict, page.tone) == (path, "1 error", "bad")
    diagnostics = table(page, "Diagnostics")
    assert column(diagnostics, "line") == [40]
    shown = detail(diagnostics, 0)
    assert [type(block) for block in shown.blocks] == [Text, Text, Excerpt, Explanation]
    assert page.layers.find("gather_elements") == shown.layer
    data = to_data(page)
    ((first, lines),) = data["sources"][path]
    assert lines[40 - first] == Path(path).read_text(encoding="utf-8").splitlines()[39]
    assert data["codes"]["OVIR402"]["meaning"] == "a declared shape differs from the inferred one"
    assert len(table(page, "Layers").rows) == len(page.layers)


def test_check_of_several_files_shows_the_layers_at_fault_and_their_neighbors() -> None:
    paths = [str(path) for path in sorted((EXAMPLES / "broken").glob("*.xml"))]
    found = [diagnostic for path in paths for diagnostic in ovir.check(path)]
    page = check_page(paths, found)
    assert figures(page)["files"] == str(len(paths))
    assert sorted(map(str, column(table(page, "Files"), "file"))) == paths
    assert [part.title for part in page.sections] == ["Diagnostics", "Codes", "Files"]
    assert page.layers.find("gather_elements") is not None
    assert page.layers.to_data()["models"] == list(dict.fromkeys(d.file for d in found if d.layer is not None))
    to_data(page)


def test_check_of_a_good_file_shows_its_layers() -> None:
    page = check_page([str(DIGITS)], [], known=3)
    assert (page.verdict, page.tone, figures(page)["known"]) == ("nothing found", "good", "3")
    assert [part.title for part in page.sections] == ["Layers"]


def test_check_of_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text("<net", encoding="utf-8")
    page = check_page([str(path)], ovir.check(path))
    assert detail(table(page, "Diagnostics"), 0).layer is None
    assert len(page.layers) == 0


# --------------------------------------------------------------------------- show


def shown(path: Path) -> Page:
    recovered = read_recovering(path)
    model = recovered.model
    return show_page(Shown(recovered, summarize(model), provenance(model.rt_info), oldest_release(model)))


def test_show() -> None:
    page = shown(DIGITS)
    summary = summarize(ovir.read_model(DIGITS))
    assert figures(page)["layers"] == str(summary.layer_count)
    assert sum(map(int, map(str, column(table(page, "Operations"), "layers")))) == summary.layer_count
    assert charts(page, "Parameters") == ["Bytes by element type"]
    assert len(table(page, "Layers").rows) == summary.layer_count
    to_data(page)


def test_show_of_a_model_with_information_for_applications(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "1,2")))
    model = net.model()
    model.rt_info["model_info", "labels"] = "cat dog"
    ovir.save_model(model, tmp_path / "labeled.xml")
    assert table(shown(tmp_path / "labeled.xml"), "Model information").rows == [("labels", "cat dog")]


def test_show_of_a_faulty_model_has_its_diagnostics() -> None:
    page = shown(EXAMPLES / "broken" / "axis_out_of_range.xml")
    assert page.tone == "bad"
    assert column(table(page, "Diagnostics"), "code") == ["OVIR305"]


def test_show_of_a_small_model_without_constants() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "?,2")))
    recovered = read_recovering(net.xml().encode(), bytes(net.blob))
    summary = summarize(recovered.model)
    page = show_page(Shown(recovered, summary, provenance(recovered.model.rt_info), oldest_release(recovered.model)))
    assert table(page, "Parameters").rows == []
    to_data(page)


# --------------------------------------------------------------------------- run


def ran(net: Net, *, watch: Watch | None = None, profile: Profile | None = None, **feeds: np.ndarray) -> Ran:
    model = net.model()
    listeners = [listener for listener in (watch, profile) if listener is not None]
    arrays = {model.input_index(name): array for name, array in feeds.items()}
    results = ovir.compile_model(model)(arrays, listeners=listeners)
    return Ran(model, arrays, results, 0.25, frozenset({0}), profile, watch=watch)


def logarithm() -> Net:
    net = Net()
    net.result(net.op("Log", net.op("ReLU", net.parameter("data", "?,3"), name="relu"), name="log"), name="out")
    return net


def test_run_with_a_profile() -> None:
    profile = Profile()
    page = run_page(ran(logarithm(), profile=profile, data=np.ones((2, 3), np.float32)))
    assert page.verdict == "first run in 250.0 ms, with preparations"
    assert charts(page, "Time") == ["Time by operation", "The 2 slowest layers", "Time along the graph"]
    layers = table(page, "Layers")
    assert {page.layers.find(name) for name in ("relu", "log")} == set(map(page.layers.cell, column(layers, "layer")))
    assert sum(map(float, map(str, column(layers, "share")))) == pytest.approx(1)
    assert section(page, "Inputs").note == "1 input with random numbers"
    to_data(page)


def test_the_report_names_no_slowest_operation_that_chance_has_chosen() -> None:
    profile = Profile()
    found = ran(logarithm(), profile=profile, data=np.ones((2, 3), np.float32))
    found = replace(found, profiled=RunTimes((0.002, 0.001, 0.004)))
    assert run_page(found).verdict == "runs in 2.00 ms"
    figures = {figure.label: (figure.value, figure.note) for figure in run_page(found).figures}
    assert figures["a run"] == ("2.00 ms", "median of 3 runs, which took 1.00 to 4.00 ms")
    assert figures["slowest operation"][0] in ("Log", "ReLU")
    profile.slowest_types = ["Log", "ReLU"]
    figures = {figure.label: (figure.value, figure.note) for figure in run_page(found).figures}
    assert figures["slowest operation"] == ("not clear", "by chance one of Log, ReLU")


def test_run_counts_values_that_are_not_finite() -> None:
    feeds = {"data": np.array([[0, 1, np.nan]], np.float32)}
    watch = Watch("inf")
    page = run_page(ran(logarithm(), watch=watch, **feeds))
    assert [figure.note for figure in page.figures if figure.tone == "bad"] == ["3 elements, 2 NaN or infinite"]
    assert page.tone == "bad"
    watched = table(page, "Watched values")
    assert column(watched, "layer") == ["log"]
    assert detail(watched, 0).layer == page.layers.find("log")
    to_data(page)


def test_run_shows_the_histogram_of_every_output() -> None:
    page = run_page(ran(logarithm(), data=np.ones((2, 3), np.float32)))
    (block,) = detail(table(page, "Outputs"), 0).blocks
    assert isinstance(block, Chart)
    assert sum(block.traces[0]["y"]) == 6


def test_run_of_texts_and_of_nothing() -> None:
    net = Net()
    net.result(net.parameter("data", "?", "string"))
    page = run_page(ran(net, data=np.array(["<b>a</b>", "b"], np.dtypes.StringDType())))
    assert column(table(page, "Outputs"), "first values") == ["'<b>a</b>' 'b'"]
    assert charts(page, "Outputs") == []
    page = run_page(ran(logarithm(), data=np.zeros((0, 3), np.float32)))
    assert charts(page, "Outputs") == []
    to_data(page)


def test_run_shows_the_shapes_that_ran(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="jinja2, of the extra `html`, is not installed")
    net = Net()
    relu = net.op("ReLU", net.parameter("data", "?,2..5"))
    net.result(net.op("NonZero", relu, opset=3, output_type="i64"))
    report = tmp_path / "run.html"
    data = np.float32([[0, 1, 2], [0, 0, 3]])
    np.savez(tmp_path / "inputs.npz", data=data)
    main(["run", str(net.write(tmp_path)), "--input", str(tmp_path / "inputs.npz"), "--html", str(report)])
    (text,) = re.findall(r'id="data">(.*?)</script>', report.read_text(encoding="utf-8"))
    types = [record[7] for record in json.loads(text)["layers"]["records"]]
    assert types == [["f32[2,3]"], ["f32[2,3]"], ["i64[2,3]"], []]


def test_run_with_scores_and_repeated_runs() -> None:
    net = Net()
    net.result(net.op("SoftMax", net.parameter("data", "?,3"), axis=1))
    done = ran(net, data=np.array([[0, 5, 1]], np.float32))
    page = run_page(Ran(done.model, done.feeds, done.results, 0.1, times=RunTimes((0.001, 0.002, 0.004))))
    assert column(table(page, "Repeated runs"), "median") == [2.0]
    (_, pairs) = detail(table(page, "Outputs"), 0).blocks
    assert isinstance(pairs, Pairs)
    assert pairs.rows[0][1].startswith("1 (0.97")
    page = run_page(replace(done, top=2))
    (_, pairs) = detail(table(page, "Outputs"), 0).blocks
    assert isinstance(pairs, Pairs)
    assert [text.split(":")[0] for text in pairs.rows[0][1].split(", ")] == ["1", "2"]


# --------------------------------------------------------------------------- compare


def test_compare_within_tolerance() -> None:
    model = ovir.read_model(DIGITS)
    page = compare_page(ovir.compare(model, DIGITS), model)
    assert page.tone == "good"
    assert set(column(table(page, "Layers"), "")) == {"within"}
    assert not any(isinstance(block, Chart) for part in page.sections for block in part.blocks)  # nothing differs
    to_data(page)


def test_compare_shows_where_errors_begin(tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):
        shutil.copy(DIGITS.with_suffix(suffix), tmp_path / f"other{suffix}")
    model, other = ovir.read_model(DIGITS), ovir.read_model(tmp_path / "other.xml")
    constant = next(layer for layer in other.layers if layer.type == "Const" and layer.shape.rank == 4)
    other.set_constant(constant.name, constant.operator.data * 1.5)  # type: ignore[union-attr]
    found = ovir.compare(model, other)
    assert found.first is not None
    page = compare_page(found, model)
    assert (page.tone, figures(page)["first layer beyond"]) == ("bad", found.first.name)
    layers = table(page, "Layers")
    assert column(layers, "")[0] == "first, largest"
    assert column(layers, "layer")[0] == found.first.name
    assert detail(layers, 0).layer == page.layers.find(found.first.name)
    assert charts(page, "Errors") == ["Error along the graph", "Layers that add the most noise", "Errors of layers"]
    curve, noise, counts = (block for block in section(page, "Errors").blocks if isinstance(block, Chart))
    assert sum(counts.traces[0]["y"]) == len(found.layers)
    *lines, beyond = curve.traces
    assert sorted(x for trace in lines for x in trace["x"]) == list(range(1, len(found.layers) + 1))
    assert sorted(beyond["x"]) == [number for number, layer in enumerate(found.layers, 1) if not layer.within]
    assert page.layers.find(found.largest.name) in noise.traces[0]["customdata"]  # type: ignore[union-attr]
    (elements,) = (block for block in section(page, "Outputs").blocks if isinstance(block, Chart))
    assert sum(elements.traces[0]["y"]) == found.outputs[0].tensor.worst.size
    to_data(page)


def test_compare_says_in_which_type_a_device_computed(tmp_path: Path) -> None:
    model, other = ovir.read_model(DIGITS), ovir.read_model(DIGITS)
    other.set_constant("conv2/weights", other.layer("conv2/weights").operator.data * np.float32(1.5))
    ovir.save_model(other, tmp_path / "other.xml")
    found = ovir.compare(model, tmp_path / "other.xml")
    by = ExecutedLayer("conv2", "Convolution", 0, "conv2,relu2", precision="bf16")
    found.add_executions({"conv2": Execution(by, ("conv2", "relu2"))})
    shown = detail(table(compare_page(found, model), "Layers"), 0)
    assert shown.title == "conv2"
    assert Text("computed in bf16", "On the device") in shown.blocks


def test_compare_shows_what_varies() -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    noise = ops.random_uniform([2, 3], np.float32(0), np.float32(1), "f32", 0, 0, name="noise")
    model = ovir.Model([ops.add(x, noise, name="noisy", tensor_names="noisy")], [x])
    page = compare_page(ovir.compare(model, model, repeat=2, atol=9), model)
    assert (page.tone, figures(page)["repeated"]) == ("bad", "other bits")
    shown = table(page, "Varying")
    assert column(shown, "varies") == ["noisy", "noise", "noisy"]
    assert column(shown, "in one request") == ["1 of 2"] * 3
    to_data(page)
    fixed = ovir.read_model(DIGITS)
    page = compare_page(ovir.compare(fixed, fixed, repeat=2), fixed)
    assert (page.tone, figures(page)["repeated"]) == ("good", "the same bits")
    assert "Varying" not in [part.title for part in page.sections]


# --------------------------------------------------------------------------- diff


def test_diff_of_equal_models() -> None:
    page = diff_page(ovir.diff(DIGITS, DIGITS))
    assert (page.verdict, page.tone, page.sections) == ("the models are equal", "good", [])


def test_diff(tmp_path: Path) -> None:
    text = DIGITS.read_text(encoding="utf-8").replace('name="relu1"', 'name="first"', 1)
    (tmp_path / "other.xml").write_text(text, encoding="utf-8")
    shutil.copy(DIGITS.with_suffix(".bin"), tmp_path / "other.bin")
    page = diff_page(ovir.diff(DIGITS, tmp_path / "other.xml"))
    assert figures(page)["changed"] == "1"
    layers = table(page, "Layers")
    assert column(layers, "status") == ["changed"]
    shown_detail = detail(layers, 0)
    (pairs,) = (block for block in shown_detail.blocks if isinstance(block, Pairs))
    assert ("name", "relu1", "first") in pairs.rows
    files = [block.file for block in shown_detail.blocks if isinstance(block, Excerpt)]
    assert files == [str(DIGITS), str(tmp_path / "other.xml")]
    assert page.layers.to_data()["records"][shown_detail.layer or 0][1] == "first"
    to_data(page)


def test_diff_of_added_and_removed_layers() -> None:
    one, other = logarithm(), Net()
    data = other.parameter("data", "?,3")
    other.result(
        other.op("Log", other.op("Exp", other.op("ReLU", data, name="relu"), name="exp"), name="log"), name="out"
    )
    page = diff_page(ovir.diff(one.model(), other.model()))
    assert figures(page)["added"] == "1"
    to_data(page)


def test_a_section_without_blocks_is_left_out() -> None:
    page = Page("show", "model", "done")
    page.add("Nothing", None)
    page.add("A table", Table(columns("a: text")))
    assert [part.id for part in page.sections] == ["a-table"]


# --------------------------------------------------------------------------- fuzz


def a_search() -> Fuzzing:
    kinds = [("crash", None), ("values", "values Floor-1")]
    findings = [
        Finding(
            f"{kind}: Floor-1",
            kind,
            ["Floor-1"],
            f"a {kind}",
            7,
            1,
            folder=folder,
            report=f"# {kind}\n\nThe *report*\n",
        )
        for kind, folder in kinds
    ]
    cells = {
        "Floor-1": {
            "f16": Cell(Counter(agrees=2, differs=1), ["values: Floor-1"]),
            "f32": Cell(Counter(agrees=3)),
            "i8": Cell(),
        },
        "Equal-1": {"f32": Cell(Counter(crashes=1), ["crash: of another search"])},
    }
    return Fuzzing(findings, "a device", 7, 7, 2, map=cells)


def test_the_page_of_a_search_opens_with_the_map() -> None:
    page = fuzz_page(a_search())
    assert [part.title for part in page.sections] == ["Map", "Findings"]
    found = table(page, "Map")
    assert [head.name for head in found.columns] == ["operation", "f32", "f16", "i8"]
    agrees, differs = Link("agrees (3)", None, "agrees"), Link("differs (1)", "#row:1:1", "differs")
    assert found.rows == [
        ("Equal-1", Link("crashes (1)", None, "crashes"), None, None),
        ("Floor-1", agrees, differs, Link("not tried", None, "not tried")),
    ]
    assert list(page.tables)[1] is table(page, "Findings")
    shown = to_data(page)["tables"][0]["rows"]
    assert shown[1][2] == {"text": "differs (1)", "href": "#row:1:1", "status": "differs"}
    assert shown[0][2] is None


def test_the_detail_of_a_finding_is_its_report_with_a_link_to_the_folder() -> None:
    findings = table(fuzz_page(a_search()), "Findings")
    assert detail(findings, 1).blocks == [
        Link("values Floor-1/", "values%20Floor-1/"),
        Markdown("# values\n\nThe *report*\n"),
        Pairs([("signature", "values: Floor-1")]),
    ]
    assert not any(isinstance(block, Link) for block in detail(findings, 0).blocks)
    shown = to_data(fuzz_page(a_search()))["tables"][1]["details"][1]["blocks"]
    assert shown[1] == {"kind": "markdown", "text": "# values\n\nThe *report*\n"}


def test_a_search_without_cells_has_no_map() -> None:
    assert [part.title for part in fuzz_page(Fuzzing()).sections] == ["Findings"]
