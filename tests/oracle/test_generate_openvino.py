"""A prompt becomes the same text as with OpenVINO: by its decoder, and by tokenizers that openvino-tokenizers makes."""

import json
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ovir

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "write_language_model.py"))
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    EXAMPLE["write"](folder)
    return folder


def test_the_decoder_of_openvino_chooses_the_same_tokens(tiny: Path) -> None:
    comparison = ovir.generate(tiny, PROMPT, max_tokens=30, against="openvino:CPU", config=EXACT).comparison
    assert comparison is not None
    assert comparison.against.startswith("OpenVINO ")
    assert comparison.precision == "f32"
    assert (comparison.first, comparison.equal) == (None, 30)
    assert max(comparison.errors) < 1e-4


def test_drawn_tokens_are_the_same(tiny: Path) -> None:
    drawn = {"temperature": 1.0, "top_p": 0.9, "seed": 5}
    found = ovir.generate(tiny, PROMPT, max_tokens=10, against="openvino:CPU", config=EXACT, **drawn)  # type: ignore[arg-type]
    assert found.comparison is not None
    assert found.comparison.equal == 10
    assert found.ids != ovir.generate(tiny, PROMPT, max_tokens=10).ids


def test_a_device_that_is_not_there(tiny: Path) -> None:
    with pytest.raises(ovir.InputError, match="no device NOTHING"):
        ovir.generate(tiny, PROMPT, against="openvino:NOTHING")


# --------------------------------------------------------------------------- real tokenizers


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return a folder with a tokenizer of byte-level BPE, and what transformers says of it."""
    for package in ("openvino_tokenizers", "tokenizers", "transformers", "regex"):
        if find_spec(package) is None:
            pytest.skip(f"making and running a tokenizer needs {package}")
    folder = tmp_path_factory.mktemp("real")
    worker = Path(__file__).with_name("language_model_worker.py")
    subprocess.run([sys.executable, str(worker), str(folder)], check=True, timeout=240, capture_output=True)
    facts: dict[str, Any] = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    ovir.save_model(EXAMPLE["decoder"](facts["size"]), folder / "openvino_model.xml")
    return folder, facts


def test_prompts_have_the_tokens_of_transformers(real: tuple[Path, dict[str, Any]]) -> None:
    folder, facts = real
    found = [ovir.generate(folder, text, max_tokens=1).prompt_ids for text in facts["texts"]]
    assert found == facts["ids"]


def test_conversations_have_the_tokens_of_transformers(real: tuple[Path, dict[str, Any]]) -> None:
    pytest.importorskip("jinja2", reason="chat templates need jinja2")
    folder, facts = real
    ovir.save_model(EXAMPLE["decoder"](facts["size"]), folder / "chat" / "openvino_model.xml")
    generator = ovir.TextGenerator(folder / "chat")
    assert generator.generate(facts["messages"], max_tokens=1, chat=True).prompt_ids == facts["chat_ids"]
    assert generator.generate("the", max_tokens=1).prompt_ids == facts["added"]  # with the tokens of the tokenizer
    (folder / "chat" / "chat_template.jinja").unlink()
    of_tokenizer = ovir.generate(folder / "chat", facts["messages"], max_tokens=1, chat=True)
    assert of_tokenizer.prompt_ids == facts["chat_ids"]


def test_pieces_are_the_text_of_the_detokenizer(real: tuple[Path, dict[str, Any]]) -> None:
    folder, facts = real
    pieces: list[str] = []
    found = ovir.generate(
        folder, facts["texts"][1], max_tokens=60, temperature=1.0, seed=2, on_text=pieces.append, against="openvino:CPU"
    )
    detokenizer = ovir.compile_model(folder / "openvino_detokenizer.xml")
    assert "".join(pieces) == found.text
    assert found.text == str(detokenizer([[found.ids[: len(found.ids) - found.ended]]])[0][0])
    assert any(not character.isascii() for character in found.text)


def test_the_tokenizer_names_the_token_that_ends_a_text(real: tuple[Path, dict[str, Any]]) -> None:
    folder, facts = real
    ends = [ovir.generate(folder, "the", max_tokens=200, temperature=3.0, seed=seed) for seed in range(5)]
    ended = [found for found in ends if found.ended]
    assert ended
    assert all(found.ids[-1] == facts["end"] and facts["end"] not in found.ids[:-1] for found in ended)


@pytest.mark.parametrize(("change", "message"), [(-5, "the tokenizer has 320 tokens, the decoder 315 logits")])
def test_a_tokenizer_of_another_model(
    change: int, message: str, real: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, facts = real
    for path in folder.glob("openvino_*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ovir.save_model(EXAMPLE["decoder"](facts["size"] + change), tmp_path / "openvino_model.xml")
    with pytest.raises(ovir.InputError, match=message):
        ovir.generate(tmp_path, "the quick fox")


def test_tokens_that_the_tokenizer_does_not_have(real: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, facts = real
    for path in folder.glob("openvino_*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ovir.save_model(EXAMPLE["decoder"](10 * facts["size"]), tmp_path / "openvino_model.xml")
    found = ovir.generate(tmp_path, "the quick fox", temperature=1.0, max_tokens=40)
    assert max(found.ids) >= facts["size"]
    assert found.text == str(ovir.compile_model(folder / "openvino_detokenizer.xml")([[found.ids]])[0][0]) != ""


def test_operations_of_tokenizers_are_compared_with_openvino(real: tuple[Path, dict[str, Any]]) -> None:
    folder, facts = real
    texts = folder / "texts.txt"
    texts.write_text("\n".join(facts["texts"]), encoding="utf-8")
    found = ovir.compare(folder / "openvino_tokenizer.xml", inputs=texts, mode="isolated")
    assert found.within
    assert found.sets == len(facts["texts"])
    assert {"RegexSplit", "BPETokenizer"} <= {layer.type for layer in found.layers}


def test_the_operation_at_which_two_tokenizers_part_ways(real: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = real
    texts = folder / "composed.txt"
    texts.write_text("Große\nGro\u0308ße\n", encoding="utf-8")
    found = ovir.compare(folder / "openvino_tokenizer.xml", folder / "other_tokenizer.xml", inputs=texts)
    assert found.first is not None
    assert found.first.type == "RegexSplit"
    assert found.first.tensor.worst_input == "composed.txt/2 'Gro\u0308ße'"
    assert len(found.first.lone_before) == 1
    assert found.first.lone_before[0].startswith("CharsMapNormalization '")
