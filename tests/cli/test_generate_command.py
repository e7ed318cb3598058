"""``ovir generate``: JSON, terminals and wrong usage; transcripts/precision.md shows the rest."""

import io
import json
import runpy
from pathlib import Path

import pytest
from support.command import Cli, require_row

import ovir
from ovir.cli.main import main

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "write_language_model.py"
PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("language_model")
    runpy.run_path(str(EXAMPLE))["write"](path)
    return str(path)


def test_json(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--max-tokens", "9", "--temperature", "0.9", "--top-k", "20", "--top-p", "0.9", "--seed", "4"]
    assert main(["generate", folder, "--prompt", PROMPT, "--json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = ovir.generate(folder, PROMPT, max_tokens=9, temperature=0.9, top_k=20, top_p=0.9, seed=4)
    assert (found["text"], found["ids"]) == (expected.text, expected.ids)
    assert found["prompt_ids"] == expected.prompt_ids
    assert found["tokens_per_second"] > 0
    assert found["ended"] is False
    assert "comparison" not in found


def test_a_terminal_is_not_given_control_characters(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ovir.generation.generate.generate", _generate_controls)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main(["generate", folder, "--prompt", PROMPT])
    assert capsys.readouterr().out == "a\tb\nc\\x1b[31m é\n"


def _generate_controls(*_: object, on_text: io.TextIOBase, **__: object) -> ovir.Generated:
    on_text("a\tb\nc\x1b[31m é")  # type: ignore[operator]
    return ovir.Generated("", [1], [1], ended=True, seconds=[1.0])


RESULTS = """
generate missing --prompt a => 2 => missing: error[OVIR101] there is no such folder
generate . => 2 => --prompt is missing
generate . --prompt a --max-tokens 256 => 2 => --max-tokens is 256, but the context
generate . --prompt a --seed 1 => 2 => --seed has no effect
generate . --prompt a --temperature 0 --top-k 3 => 2 => --top-k has no effect with a temperature of 0
generate . --prompt a --min-p -1 => 2 => argument --min-p: '-1' is not a number above 0 and at most 1
generate . --prompt a --top-p 0 => 2 => argument --top-p: '0' is not a number above 0 and at most 1
generate . --prompt a --against openvino:NOTHING => 2 => openvino:NOTHING
generate . --prompt a --config A => 2 => expected KEY=VALUE
generate . --prompt a --config A=b => 2 => config has properties of a device
generate . --prompt '' => 2 => the prompt has no tokens
generate . --prompt a --max-tokens 4 --against . => 0 => : the same token at 4 of 4 steps\\nlargest difference of a logit: 0, at step 0
"""


@pytest.mark.parametrize("row", RESULTS.strip().splitlines())
def test_what_is_printed(folder: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    monkeypatch.chdir(folder)
    require_row(cli, monkeypatch, row)
