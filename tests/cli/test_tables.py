"""Tables: in full for programs and files, and readable in terminals of 80 columns and more."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net
from support.command import Cli
from support.terminals import needs_terminal, run_in_terminal

import ovir
from ovir.cli.terminal.output import say_table
from ovir.cli.terminal.tables import FittedTable
from ovir.core.short_names import columns_of, short_names
from ovir.core.tables import Table, columns

BAD = Path(__file__).parent.parent / "data" / "bad"
COMMON = "__module.decoder.model.layers."
NAMES = [
    f"{COMMON}{i}.self_attention.{part}_projection/aten::linear/MatMul"
    for i in range(3)
    for part in ("query", "key", "value")
]


def lines_of(heads: str, rows: list[list[str]], width: int, least: tuple[str, ...] = ()) -> list[str]:
    table = FittedTable(Table(columns(heads), rows, least=least), width=width)
    lines = [*table.heads(), *table.rows()]
    assert all(columns_of(line) <= width for line in lines)
    return lines


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(Table(columns("id: count; name: name"), [(1, "relu"), (20, "a"), (3, "")]), title="layers")
    assert capsys.readouterr().out == "layers\nid  name\n 1  relu\n20  a\n 3\n"


def test_a_table_without_rows_has_its_heads(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(Table(columns("id: count; name: name")))
    assert capsys.readouterr().out == "id  name\n"


def test_programs_and_files_get_every_column_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(Table(columns("name: name; text: sentence"), [(NAMES[0] * 4, "word " * 100)], least=("text",)))
    assert NAMES[0] * 4 + "  " + "word " * 99 + "word" in capsys.readouterr().out


def test_a_table_that_fits_is_the_same_in_a_terminal() -> None:
    rows = [["1", "x", "f32[1,2]"], ["20", "größe 幅 e\u0301", ""]]
    table = Table(columns("id: count; name: name; shape: tensor"), rows)
    fitted, free = FittedTable(table, width=40), FittedTable(table)
    assert [*fitted.heads(), *fitted.rows()] == [*free.heads(), *free.rows()]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_names_are_shortened_so_that_they_differ_and_numbers_stay_whole(width: int) -> None:
    rows = [[name, "MatMul", "-0.000451782", "12,345,678"] for name in NAMES]
    head, *lines = lines_of("layer: name; type: type; mean of all: real; beyond: count", rows, width)
    assert head.split() == ["layer", "type", "mean", "of", "all", "beyond"]
    assert len(set(lines)) == len(NAMES) == len(lines)
    assert all(line.endswith("-0.000451782  12,345,678") for line in lines)


def test_names_that_would_look_alike_are_numbered() -> None:
    names = [f"{'a' * 20}{number}{'b' * 20}" for number in range(12)]
    shown = short_names([*names, names[0]], 10)
    assert shown[0] == shown[-1] == "a…bbbb (1)"
    assert len(set(shown)) == len(names)
    assert all(columns_of(name) <= 10 for name in shown)


def test_columns_that_say_nothing_are_left_out_first() -> None:
    heads = columns("layer: name; max: real; mean: real; nonfinite: count; sum: real")
    rows = [[name, 0.123456, 0.123456, None, 0.1] for name in NAMES]
    table = Table(heads, rows, least=("mean", "nonfinite"))
    assert FittedTable(table, width=50).left_out == ["nonfinite"]
    assert FittedTable(table, width=40).left_out == ["mean", "nonfinite"]


def test_sentences_take_lines_of_whole_words() -> None:
    lines = lines_of(
        "code: tag; meaning: sentence", [["OVIR106", "the version is missing, unknown, or no longer read"]], 40
    )
    assert lines[1:] == ["OVIR106  the version is missing,", "         unknown, or no longer read"]


def test_a_list_that_is_too_long_ends_with_an_ellipsis() -> None:
    lines = lines_of("n: count; first values: values", [["1", "0.123456 0.234567 0.345678 0.456789"]], 34)
    assert lines[1] == "1  0.123456 0.234567 0.345678 …"


@pytest.mark.parametrize("kind", ["sentence", "list"])
def test_a_last_column_without_room_stands_below_each_row(kind: str) -> None:
    words = "[0] is data[0] and [1] is computed from data[1] and data[2]"
    rows = [["1", "x" * 30, words], ["2", "y", ""]]
    heads = f"n: count; name: text; why: {kind}"
    lines = lines_of(heads, rows, 50, least=("why", "name"))
    assert lines == [
        "n  name",
        "      why",
        f"1  {'x' * 30}",
        "      [0] is data[0] and [1] is computed from",
        "      data[1] and data[2]",
        "2  y",
    ]
    assert lines_of(heads, [[*row[:2], ""] for row in rows], 34)[0] == "n  name"


def test_a_column_of_another_kind_gives_way_last() -> None:
    lines = lines_of("name: name; shape: tensor", [["n" * 30, "f32[" + "1," * 20 + "1]"]], 30)
    assert "…" in lines[1]


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("größe", 5), ("幅", 2), ("e\u0301", 1), ("", 0)])
def test_wide_characters_take_two_columns_and_combining_ones_none(text: str, columns: int) -> None:
    assert columns_of(text) == columns


# ----- every command that prints tables


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """Write a model whose layers have long names with a common beginning, and a recording of it that differs."""
    net = Net()
    tensor = net.parameter("input_values_of_the_encoder", "?,4")
    for name in NAMES:
        weights = net.const(np.eye(4, dtype=np.float32) * np.float32(1.1), name=f"{name}.weight_of_projection")
        tensor = net.op("MatMul", tensor, weights, name=name)
    net.result(net.op("Relu", tensor, name=f"{COMMON}final_activation/aten::relu/Relu"))
    path = net.write(tmp_path, "deep")
    model = ovir.read_model(path)
    compiled = ovir.compile_model(model)
    taps = compiled({0: np.ones((2, 4), np.float32)}, taps=NAMES).taps
    np.savez(
        tmp_path / "recorded.npz",
        input_values_of_the_encoder=np.ones((2, 4), np.float32),
        **{name: taps[name][0] + (i > 4) for i, name in enumerate(NAMES)},
    )
    return path


COMMANDS = {
    "run": ("run", "{}", "--tap", "MatMul", "--watch", "nan,overflow:f8e4m3"),
    "infer": ("infer", "{}"),
    "show": ("show", "{}"),
    "compare": ("compare", "{}", "--against", "{folder}/recorded.npz"),
    "bisect": ("bisect", "{}", "--against", "{folder}/recorded.npz"),
    "precision": ("precision", "{}", "--to", "bf16"),
    "extract": ("extract", "{}", "--outputs", NAMES[3], "-o", "{folder}/part.xml"),
    "explain": ("explain", "OVIR1"),
    "ops": ("ops",),
    "check": ("check", *map(str, sorted(BAD.glob("OVIR20*.xml"))), "--summary"),
}


@needs_terminal
@pytest.mark.slow
@pytest.mark.parametrize(("command", "columns"), [*((name, 80) for name in COMMANDS), ("run", 120), ("compare", 120)])
def test_tables_fit_into_the_terminal(command: str, columns: int, deep: Path, cli: Cli) -> None:
    arguments = [text.format(deep, folder=deep.parent) for text in COMMANDS[command]]
    shown = run_in_terminal(*arguments, columns=columns, NO_COLOR="1")
    text = re.sub(r"[^\n]*\r", "", shown.text)  # progress
    rows = [line for line in text.splitlines() if len(re.split(r"\s{2,}", line.strip())) > 2]
    assert rows
    assert max(map(columns_of, rows)) <= columns
    in_full = set(cli(*arguments).out.split())
    numbers = {word for row in rows for word in row.split() if re.fullmatch(r"[-+.,\de%]*\d[-+.,\de%]*", word)}
    assert numbers <= in_full


@needs_terminal
def test_a_terminal_says_which_columns_it_leaves_out(deep: Path) -> None:
    shown = run_in_terminal("compare", deep, "--against", deep.parent / "recorded.npz", columns=80, NO_COLOR="1")
    assert re.search(r"\(80 columns leave out [^)]*RMSE[^)]*; a pipe shows all\)", " ".join(shown.text.split()))
