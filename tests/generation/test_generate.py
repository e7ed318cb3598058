"""A prompt becomes text, by decoders that keep what they have seen in different ways."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset15 as ops
from ovir.cli.main import main

pytestmark = pytest.mark.slow

PROMPT = "Once upon a time"


def write_json(path: Path, **entries: object) -> None:
    path.write_text(json.dumps(entries), encoding="utf-8")


@pytest.fixture(scope="module")
def whole(written: Path) -> ovir.Generated:
    """Return the first 20 tokens after the prompt."""
    return ovir.generate(written, PROMPT, max_tokens=20)


@pytest.fixture(scope="module")
def plain(written: Path, tmp_path_factory: pytest.TempPathFactory) -> ovir.TextGenerator:
    """Return a generator whose folder has no settings."""
    folder = shutil.copytree(written, tmp_path_factory.mktemp("plain") / "model")
    (folder / "generation_config.json").unlink()
    return ovir.TextGenerator(folder)


# --------------------------------------------------------------------------- the example


def test_text_goes_on_with_each_token(folder: Path) -> None:
    pieces: list[str] = []
    found = ovir.generate(folder, PROMPT, max_tokens=20, on_text=pieces.append)
    assert found.ids == ovir.generate(str(folder), PROMPT, max_tokens=30).ids[:20]
    assert found.prompt_ids == [ord(c) - 32 for c in PROMPT]
    assert "".join(pieces) == found.text == str(found) == "".join(chr(number + 32) for number in found.ids)
    assert len(set(found.ids)) > 5
    assert len(found.seconds) == 20
    assert found.tokens_per_second == pytest.approx(19 / sum(found.seconds[1:]))
    assert not found.ended


def test_each_token_is_the_best_after_all_before_it(folder: Path) -> None:
    found = ovir.generate(folder, PROMPT, max_tokens=12)
    ids = np.array([found.prompt_ids + found.ids])
    length = ids.shape[1]
    feeds = {
        "input_ids": ids,
        "attention_mask": np.ones((1, length), np.int64),
        "position_ids": np.arange(length)[np.newaxis],
        "beam_idx": np.zeros(1, np.int32),
    }
    logits = ovir.compile_model(folder / "openvino_model.xml")(feeds)["logits"][0]
    assert logits.argmax(-1)[len(PROMPT) - 1 : -1].tolist() == found.ids


def test_draws_depend_on_the_seed_alone(plain: ovir.TextGenerator) -> None:
    def drawn(**arguments: Any) -> list[int]:
        return plain.generate(PROMPT, max_tokens=12, **arguments).ids

    assert drawn(temperature=1.0, seed=1) == drawn(temperature=1.0, seed=1)
    assert drawn(temperature=1.0) == drawn(temperature=1.0, seed=0)
    assert len({tuple(drawn(temperature=1.0, seed=seed)) for seed in range(4)}) == 4
    assert drawn(top_k=1, seed=5) == drawn() == drawn(temperature=0)


def test_onnxruntime_generates_the_same(folder: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the engine needs onnxruntime")
    expected = ovir.generate(folder, PROMPT, max_tokens=12).ids
    assert ovir.generate(folder, PROMPT, max_tokens=12, engine="onnxruntime").ids == expected


@pytest.mark.parametrize("where", ["generation_config.json", "config.json", "a list", "a part", "the tokenizer"])
def test_a_token_ends_the_text(where: str, folder: Path, whole: ovir.Generated) -> None:
    ids = whole.ids
    end = ids[7]
    (folder / "generation_config.json").unlink()
    if where == "the tokenizer":
        path = folder / "openvino_tokenizer.xml"
        text = path.read_text(encoding="utf-8").replace("</edges>", "</edges>\n<rt_info>RT</rt_info>")
        assert "RT" in text
        path.write_text(text.replace("RT", f'<eos_token_id value="{end}" />'), encoding="utf-8")
    elif where == "a list":
        write_json(folder / "generation_config.json", eos_token_id=[90, end])
    elif where == "a part":
        write_json(folder / "config.json", text_config={"eos_token_id": end})
    else:
        write_json(folder / where, eos_token_id=end)
    found = ovir.generate(folder, PROMPT, max_tokens=12)
    assert found.ended
    assert found.ids == ids[: ids.index(end) + 1]
    assert found.text == "".join(chr(number + 32) for number in found.ids[:-1])


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, {"temperature": 0.5}),
        ({"temperature": 0.6, "top_k": 5, "top_p": 0.95}, {"top_k": 3}),
        ({"do_sample": False, "temperature": 2.0}, {"top_p": 0.2}),
        ({"do_sample": True}, {"top_k": 9, "top_p": 0.9}),
        ({"do_sample": True, "temperature": 2.0}, {"temperature": 0.5}),
        ({"do_sample": True, "temperature": None, "top_k": 0, "top_p": 0.5}, {"top_k": 3}),
        ({"do_sample": True, "top_k": 4}, {"top_p": 0.2}),
        ({"do_sample": True, "min_p": 0.1}, {"top_k": 9, "top_p": 0.9}),
        ({"do_sample": False, "min_p": 0.1}, {"top_k": 3}),
        ({"do_sample": True, "temperature": 0.0, "top_k": 4}, {"temperature": 0.5}),
    ],
)
def test_the_folder_says_how_tokens_are_drawn(
    settings: dict[str, Any], given: dict[str, Any], folder: Path, plain: ovir.TextGenerator
) -> None:
    write_json(folder / "generation_config.json", **settings)
    arguments: list[dict[str, Any]] = [{}, given, {"temperature": 0}]
    generator = ovir.TextGenerator(folder)
    found = [generator.generate(PROMPT, max_tokens=12, **given).ids for given in arguments]
    for given, ids in zip(arguments, found, strict=True):
        values = {name: value for name, value in settings.items() if value and name != "do_sample"} | given
        draws = bool(given) or (settings.get("do_sample") and settings.get("temperature") != 0)
        expected = {"temperature": 1.0, **values} if draws and given != {"temperature": 0} else {}
        assert ids == plain.generate(PROMPT, max_tokens=12, **expected).ids


@pytest.mark.parametrize("form", [str, lambda text: [text], lambda text: ["never so", "", text]])
def test_a_text_of_the_folder_ends_the_text(form: Callable[[str], object], folder: Path, whole: ovir.Generated) -> None:
    stop = whole.text[7:10]
    write_json(folder / "generation_config.json", stop_strings=form(stop))
    pieces: list[str] = []
    found = ovir.generate(folder, PROMPT, max_tokens=20, on_text=pieces.append)
    assert "".join(pieces) == found.text == whole.text[: whole.text.index(stop)]
    assert found.ids == whole.ids[: whole.text.index(stop) + 3]
    assert found.ended


@pytest.mark.parametrize("size", [1, 3])
def test_a_text_of_the_caller_ends_the_text(size: int, folder: Path, whole: ovir.Generated) -> None:
    stop = whole.text[7 : 7 + size]
    write_json(folder / "generation_config.json", stop_strings=whole.text[3:5])
    generator = ovir.TextGenerator(folder)
    found = generator.generate(PROMPT, max_tokens=20, stop=stop if size == 1 else ["never so", stop])
    assert (found.text, found.ended) == (whole.text[: whole.text.index(stop)], True)
    assert generator.generate(PROMPT, max_tokens=20, stop=[]).text == whole.text


@pytest.mark.parametrize("held", [False, True])
def test_on_text_ends_the_text_when_it_returns_true(
    held: bool, plain: ovir.TextGenerator, whole: ovir.Generated
) -> None:
    pieces: list[str] = []

    def on_text(piece: str) -> bool:
        pieces.append(piece)
        return len(pieces) == 4

    stop = whole.text[3:6] + "never so" if held else []  # its beginning waits for what follows
    found = plain.generate(PROMPT, max_tokens=20, on_text=on_text, stop=stop)
    assert found.ended
    assert len(pieces) == 4
    assert found.text == "".join(pieces) == whole.text[: len(found.text)]
    found = plain.generate(PROMPT, max_tokens=20, on_text=len)  # other true values, as write() returns
    assert (found.ids, found.ended) == (whole.ids, False)


@pytest.mark.parametrize("drawn", [{}, {"temperature": 1.0}])
def test_the_penalty_is_that_of_the_folder_or_of_the_caller(
    drawn: dict[str, Any], folder: Path, plain: ovir.TextGenerator
) -> None:
    def ids(generator: ovir.TextGenerator, **arguments: Any) -> list[int]:
        return generator.generate(PROMPT, max_tokens=12, **drawn, **arguments).ids

    none, strong, weak = ids(plain), ids(plain, repetition_penalty=9.0), ids(plain, repetition_penalty=1.1)
    assert len({tuple(none), tuple(strong), tuple(weak)}) == 3
    if not drawn:
        assert len({*strong, *(ord(c) - 32 for c in PROMPT)}) == len(strong) + len(set(PROMPT))
    write_json(folder / "generation_config.json", repetition_penalty=9.0)
    generator = ovir.TextGenerator(folder)
    assert ids(generator) == strong
    assert ids(generator, repetition_penalty=1.0) == none
    assert ids(generator, repetition_penalty=1.1) == weak


def test_a_generator_makes_the_same_texts_as_new_ones(folder: Path) -> None:
    generator = ovir.TextGenerator(folder)
    for prompt, arguments in ((PROMPT, {}), ("a", {"temperature": 1.0, "seed": 3}), (PROMPT, {"against": folder})):
        expected = ovir.generate(folder, prompt, max_tokens=12, **arguments)  # type: ignore[arg-type]
        assert generator.generate(prompt, max_tokens=12, **arguments).ids == expected.ids  # type: ignore[arg-type]


def test_a_generator_reads_and_compiles_once(folder: Path) -> None:
    generator = ovir.TextGenerator(folder)
    assert repr(generator) == f"TextGenerator({str(folder)!r}, engine='numpy')"
    expected = generator.generate(PROMPT, max_tokens=5)
    for path in folder.iterdir():
        path.unlink()
    assert generator.generate(PROMPT, max_tokens=5).ids == expected.ids


def test_a_generator_goes_on_after_a_text_that_failed(folder: Path) -> None:
    generator = ovir.TextGenerator(folder)
    with pytest.raises(ZeroDivisionError):
        generator.generate(PROMPT, max_tokens=5, on_text=lambda _: 1 // 0)
    with pytest.raises(ovir.InputError, match="has no tokens"):
        generator.generate("")
    assert generator.generate(PROMPT, max_tokens=5).ids == ovir.generate(folder, PROMPT, max_tokens=5).ids


def test_a_generator_makes_one_text_at_a_time(folder: Path) -> None:
    generator = ovir.TextGenerator(folder)
    refused: list[str] = []

    def again(piece: str) -> None:
        with pytest.raises(ovir.InputError, match="making another text"):
            generator.generate(PROMPT, max_tokens=2)
        refused.append(piece)

    found = generator.generate(PROMPT, max_tokens=5, on_text=again)
    assert "".join(refused) == found.text
    assert found.ids == generator.generate(PROMPT, max_tokens=5).ids


def test_settings_without_effect_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(folder / "generation_config.json", presence_penalty=1.1, num_beams=1, typical_p=1, bad_words_ids=[[3]])
    expected = {"presence_penalty": 1.1, "bad_words_ids": [[3]]}
    assert ovir.generate(folder, PROMPT, max_tokens=2).to_dict()["ignored"] == expected
    assert main(["generate", str(folder), "--prompt", PROMPT, "--max-tokens", "2"]) == 0
    message = "these settings of generation_config.json have no effect: presence_penalty 1.1, bad_words_ids [[3]]"
    assert message in capsys.readouterr().err


def test_tokens_that_the_detokenizer_does_not_have(folder: Path, example: dict[str, Any]) -> None:
    """A decoder may have more logits than there are tokens; such tokens have no text, and the others keep theirs."""
    count = example["END"]
    ids = _parameter("ids", [1, -1])
    symbols = np.arange(32, 32 + count, dtype=np.uint8)
    begins, ends = np.arange(count, dtype=np.int32), np.arange(1, count + 1, dtype=np.int32)
    rows = ovir.create_layer("VocabDecoder", [ops.convert(ids, "i32"), begins, ends, symbols]).outputs
    fused = ovir.create_layer("FuzeRagged", rows[:4]).outputs
    detokenizer = ovir.Model([ops.string_tensor_pack(*fused, rows[4])], [ids], "detokenizer")
    ovir.save_model(detokenizer, folder / "openvino_detokenizer.xml")
    ovir.save_model(example["decoder"](3 * count), folder / "openvino_model.xml")
    found = ovir.generate(folder, PROMPT, max_tokens=30, temperature=1.0, against=folder)
    known = [number for number in found.ids if number < count]
    assert 0 < len(known) < len(found.ids)
    assert found.text == "".join(chr(number + 32) for number in known)


def test_the_context_limits_the_text(folder: Path) -> None:
    write_json(folder / "config.json", max_position_embeddings=20)
    assert len(ovir.generate(folder, PROMPT).ids) == 20 - len(PROMPT)
    assert len(ovir.generate(folder, PROMPT, max_tokens=4).ids) == 4


# --------------------------------------------------------------------------- other kinds of decoders

VOCABULARY = 95


def _parameter(name: str, shape: list[int], element_type: str = "i64") -> Any:
    return ops.parameter(shape, element_type, name=name, tensor_names={name})


def _named(layer: Any, name: str) -> Any:
    layer.outputs[0].names = {name}
    return layer


def _decoder(kind: str) -> ovir.Model:
    """Return a decoder that continues with the sum of all tokens, the last position and the length of the mask."""
    ids, mask, positions = (_parameter(name, [-1, -1]) for name in ("input_ids", "attention_mask", "position_ids"))
    inputs, outputs, sinks = [ids, mask, positions], [], []
    seen = ops.reshape(ids, [1, 1, -1, 1], False)
    if kind == "past inputs":
        past = _parameter("past_key_values.0.key", [-1, 1, -1, 1], "f32")
        inputs.append(past)
        seen = ops.convert(ops.concat([past, ops.convert(seen, "f32")], 2), "i64")
        outputs.append(_named(ops.convert(seen, "f32"), "present.0.key"))
    elif kind == "state":
        beams = _parameter("beam_idx", [-1], "i32")
        inputs.append(beams)
        nothing = ops.constant(np.zeros((1, 1, 0, 1), np.int64))
        past = ops.gather(ops.read_value(nothing, "past", "i64", [-1, 1, -1, 1]), beams, np.array(0))
        seen = ops.concat([past, seen], 2)
        sinks.append(ops.assign(seen, "past"))
    total = ops.add(ops.reduce_sum(seen, np.array([0, 1, 2, 3])), ops.reduce_max(positions, np.array([0, 1])))
    next_token = ops.mod(ops.add(total, ops.reduce_sum(mask, np.array([0, 1]))), np.int64(VOCABULARY))
    logits = ops.one_hot(next_token, np.int64(VOCABULARY), np.float32(1), np.float32(0), 0)
    every = ops.broadcast(logits, ops.concat([ops.shape_of(ids), np.array([VOCABULARY])], 0))
    return ovir.Model([_named(every, "logits"), *outputs], inputs, "sums", sinks=sinks)


@pytest.mark.parametrize("kind", ["state", "past inputs", "neither"])
def test_what_the_decoder_has_seen(kind: str, folder: Path) -> None:
    ovir.save_model(_decoder(kind), folder / "openvino_model.xml")
    found = ovir.generate(folder, "Hello", max_tokens=8)
    seen = list(found.prompt_ids)
    for _ in range(8):
        seen.append((sum(seen) + len(seen) - 1 + len(seen)) % VOCABULARY)
    assert found.prompt_ids + found.ids == seen


def test_padding_is_no_part_of_the_prompt(folder: Path) -> None:
    ids = _parameter("text", [1], "string")
    numbers = ops.constant(np.array([[0, 0, 5, 6]]))
    outputs = [_named(numbers, "input_ids"), _named(ops.constant(np.array([[0, 0, 1, 1]])), "attention_mask")]
    ovir.save_model(ovir.Model(outputs, [ids], "padded"), folder / "openvino_tokenizer.xml")
    assert ovir.generate(folder, PROMPT, max_tokens=1).prompt_ids == [5, 6]


# --------------------------------------------------------------------------- comparisons


def test_a_folder_agrees_with_itself(folder: Path) -> None:
    found = ovir.generate(folder, PROMPT, max_tokens=6, against=folder).comparison
    assert found is not None
    assert (found.first, found.equal, found.errors) == (None, 6, [0.0] * 6)


def test_the_first_step_with_other_tokens(folder: Path, example: dict[str, Any], tmp_path: Path) -> None:
    model = example["decoder"](example["END"] + 1)
    last = next(layer for layer in model.layers if layer.type == "Result").inputs[0].source.layer
    weights = last.inputs[1].source.layer
    changed = weights.operator.data.copy()
    found = ovir.generate(folder, PROMPT, max_tokens=12)
    other = tmp_path / "other"
    other.mkdir()
    token = found.ids[3]
    changed[token] = 0  # the other decoder never chooses it
    model.set_constant(weights.name, changed)
    ovir.save_model(model, other / "openvino_model.xml")
    comparison = ovir.generate(folder, PROMPT, max_tokens=12, against=other).comparison
    assert comparison is not None
    first = comparison.first
    assert first is not None
    assert first.step == found.ids.index(token)
    assert (first.chosen.id, first.chosen.text, first.chosen.other_logit) == (token, chr(token + 32), 0.0)
    assert first.other.id != token
    assert first.other.logit == pytest.approx(first.other.other_logit, abs=1e-5)
    assert first.chosen.logit > first.other.logit
    assert comparison.equal == sum(number != token for number in found.ids)
    assert comparison.errors[comparison.worst] == max(comparison.errors) >= first.chosen.logit - 1e-5
    assert json.loads(json.dumps(comparison.to_dict()))["first"]["chosen"]["id"] == token


# --------------------------------------------------------------------------- errors


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _renamed(*names: str) -> Callable[[Path], None]:
    """Return a function that replaces the decoder by files of other names."""

    def rename(folder: Path) -> None:
        for name in names:
            shutil.copy(folder / "openvino_model.xml", folder / name)
        (folder / "openvino_model.xml").unlink()

    return rename


def _written(entries: dict[str, object]) -> Callable[[Path], None]:
    return lambda folder: write_json(folder / "generation_config.json", **entries)


def _with_input(folder: Path) -> None:
    model = ovir.read_model(folder / "openvino_model.xml")
    extra = _parameter("token_type_ids", [-1, -1])
    outputs = [_named(ops.convert(extra, "i32"), "types")]
    ovir.save_model(ovir.join(model, ovir.Model(outputs, [extra], "x"), {}), folder / "openvino_model.xml")


def _replaced(name: str, inputs: list[Any], outputs: list[Any]) -> Callable[[Path], None]:
    return lambda folder: ovir.save_model(ovir.Model(outputs, inputs, "other"), folder / name)


def _logits(ids: Any, value: float, count: int) -> Any:
    shape = ops.concat([ops.shape_of(ids), np.array([count])], 0)
    return _named(ops.broadcast(np.float32(value), shape), "logits")


def _model_with(name: str, value: float = 0.0, count: int = 96, more: str = "") -> Callable[[Path], None]:
    """Return a function that writes a decoder with an input of this name."""
    ids = _parameter(name, [-1, -1])
    inputs = [ids, *([_parameter(more, [-1, -1])] if more else [])]
    return _replaced("openvino_model.xml", inputs, [_logits(ids, value, count)])


def _settings(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (_without("openvino_model.xml"), r"the folder has no openvino_model.xml\n  hint: `optimum-cli"),
        (_renamed("openvino_encoder_model.xml", "openvino_decoder_model.xml"), "folder has no openvino_model.xml"),
        (_written({"temperature": -1}), "generation_config.json: .*temperature must be a number of 0 or more, got -1"),
        (_written({"repetition_penalty": 0}), "generation_config.json: .*repetition_penalty must be .* above 0, got 0"),
        (_written({"top_k": "many"}), "generation_config.json: .*top_k must be an integer of at least 1, got 'many'"),
        (_written({"stop_strings": 3}), "generation_config.json: .*stop_strings must be a text or a list of .* got 3"),
        (_without("openvino_tokenizer.xml"), r"the folder has no openvino_tokenizer.xml\n  hint: `convert_tokenizer"),
        (_without("openvino_detokenizer.xml"), r"the folder has no openvino_detokenizer.xml"),
        (_model_with("inputs_embeds"), "not a .* of text: it has no input 'input_ids': its inputs are 'inputs_embeds'"),
        (_model_with("input_ids", more="labels"), "it has an input 'labels', for which a prompt gives no value"),
        (_model_with("input_ids", more="past_key_values.0.key"), "it has no output 'present.0.key'"),
        (_model_with("input_ids", count=50), "vocabularies differ: the .* has token 85, the decoder has 50 logits"),
        (_model_with("input_ids", value=float("nan")), "the logits after 16 tokens hold NaN"),
        (_settings("{"), "config.json: .*cannot read the settings"),
        (_settings("[]"), "config.json: .*the file holds no JSON object"),
        (_settings('{"n_positions": 16}'), "the context of the model is 16 tokens: the prompt has 16, which fills it"),
    ],
)
def test_folders_that_cannot_be_used(prepare: Callable[[Path], object], message: str, folder: Path) -> None:
    prepare(folder)
    with pytest.raises(ovir.OvirError, match=message):
        ovir.generate(folder, PROMPT)


@pytest.mark.parametrize(
    ("prompt", "arguments", "message"),
    [
        ("", {}, "the prompt has no tokens"),
        (3, {}, "the prompt must be a text, got int"),
        (["a", "b"], {}, "the prompt must be a text, got list"),
        ("\udcff", {}, "the prompt is not UTF-8"),
        (PROMPT, {"max_tokens": 0}, "max_tokens must be an integer of at least 1, got 0"),
        (PROMPT, {"max_tokens": 241}, "max_tokens is 241, but the context of the .* has 16, so there is room for 240"),
        (PROMPT, {"engine": "torch"}, "unknown engine 'torch'"),
        (PROMPT, {"config": {"A": "b"}}, "config has properties of a device"),
        (PROMPT, {"against": "nowhere"}, "nowhere: error.*: there is no .* folder|nowhere: .*there is no such folder"),
        (PROMPT, {"top_p": 2}, "top_p must be"),
        (PROMPT, {"stop": [3]}, r"stop must be a text or a list of texts, got \[3\]"),
    ],
)
def test_arguments_that_cannot_be_used(prompt: Any, arguments: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(ovir.OvirError, match=message):
        ovir.generate(folder, prompt, **arguments)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ovir.ReadError, match="there is no such folder"):
        ovir.generate(tmp_path / "missing", PROMPT)
    (tmp_path / "file").write_text("")
    with pytest.raises(ovir.ReadError, match="this is a file, not the folder of a language model"):
        ovir.generate(tmp_path / "file", PROMPT)


def test_decoders_with_other_vocabularies_cannot_be_compared(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _model_with("input_ids", count=200)(other)
    with pytest.raises(ovir.InputError, match=r"the first has 96 logits, .*other has 200"):
        ovir.generate(folder, PROMPT, against=other)
