"""The chat template of a folder makes the prompt, in a sandbox, and as the package transformers makes it."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset15 as ops
from ovir.cli.main import main
from ovir.generation import chat
from ovir.generation.chat import ChatTemplate
from ovir.generation.folder import Tokens

pytest.importorskip("jinja2", reason="chat templates need jinja2, of the extra `chat`")

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Größe? <b>"},
    {"role": "assistant", "content": "2 m"},
    {"role": "user", "content": "Why?"},
]
TURNS = (
    "{{ bos_token }}{% for message in messages %}\n"
    "  {% if message.role == 'system' %}\n[{{ message['content'] | trim }}]\n{% continue %}{% endif %}\n"
    "<{{ message.role }}>{{ message.content }}{{ eos_token }}\n{% endfor %}\n"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
TEMPLATES = [
    TURNS,
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + m.content|length %}{% endfor %}{{ ns.n }}",
    "{{ messages | tojson }}{{ {'b': 'é', 'a': '<'} | tojson(indent=2, sort_keys=True) }}",
    "{% for m in messages %}{% generation %}{% set x = 1 %}{{ m.content }}{% endgeneration %}{{ x }}{% break %}{% endfor %}",
    "{% if tools is none and documents is none %}{{ none_such }}{% endif %}{{ strftime_now('%Y') }}",
    "{% macro turn(m) %}{{ m.role }}: {{ m.content }}\n{% endmacro %}{% for m in messages %}{{ turn(m) }}{% endfor %}",
]
TOKENS = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "pad_token": None}


def template(folder: Path, text: str) -> ChatTemplate:
    (folder / "chat_template.jinja").write_text(text, encoding="utf-8")
    return ChatTemplate(folder, None)


def write_config(folder: Path, **entries: Any) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({**TOKENS, **entries}), encoding="utf-8")


def test_the_turns_of_a_conversation(tmp_path: Path) -> None:
    write_config(tmp_path)
    assert template(tmp_path, TURNS).render(MESSAGES) == (
        "<s>[Be brief.]\n<user>Größe? <b></s>\n<assistant>2 m</s>\n<user>Why?</s>\n<assistant>"
    )
    assert template(tmp_path, TURNS).render("Why?") == "<s><user>Why?</s>\n<assistant>"


@pytest.mark.parametrize("text", TEMPLATES)
def test_transformers_makes_the_same(text: str, tmp_path: Path) -> None:
    utils = pytest.importorskip("transformers.utils.chat_template_utils", reason="transformers is the reference")
    write_config(tmp_path)
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    expected, _ = utils.render_jinja_template([MESSAGES], chat_template=text, add_generation_prompt=True, **tokens)
    assert template(tmp_path, text).render(MESSAGES) == expected[0]


CALL = {"type": "function", "function": {"name": "f", "arguments": {"x": None, "y": 1}}}


@pytest.mark.parametrize(
    "message",
    [
        {"content": None},
        {"content": ""},
        {"content": None, "tool_calls": [CALL]},
        {"tool_calls": [CALL]},
        {"content": "a", "tool_calls": None, "name": None},
        {"content": [{"type": "text", "text": "a"}, {"type": "image"}, None]},
        {"content": {"a": None}},
        {"content": 5},
        {"content": "a", "reasoning": "b"},
        {"content": "a", "thinking": "b", "reasoning_content": None},
    ],
)
def test_contents_of_messages_as_in_transformers(message: dict[str, Any], tmp_path: Path) -> None:
    base = pytest.importorskip("transformers", reason="transformers is the reference").PreTrainedTokenizerBase
    conversation = [{"role": "assistant", **message}]
    text = (
        "{{ messages | tojson }}{% for m in messages %}[{{ m.content }}{{ m['content'] is none }}{{ m.content is defined }}"
        "{{ m.tool_calls }}{{ m.name }}{{ m.reasoning_content }}{{ m.thinking }}]{% endfor %}"
    )
    expected = base().apply_chat_template(conversation, chat_template=text, tokenize=False, add_generation_prompt=True)
    write_config(tmp_path)
    assert template(tmp_path, text).render(conversation) == expected


@pytest.mark.parametrize(
    ("file", "config", "of_tokenizer", "expected"),
    [
        ("file", "config", "tokenizer", "file"),
        (None, "config", "tokenizer", "config"),
        (None, [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "named"}], "tokenizer", "named"),
        (None, None, "tokenizer", "tokenizer"),
    ],
)
def test_where_the_template_is(file: str | None, config: Any, of_tokenizer: str, expected: str, tmp_path: Path) -> None:
    write_config(tmp_path, chat_template=config)
    if file is not None:
        (tmp_path / "chat_template.jinja").write_text(file, encoding="utf-8")
    assert ChatTemplate(tmp_path, of_tokenizer).render("a") == expected


@pytest.mark.parametrize("of_tokenizer", [None, "", {"a": "b"}])
@pytest.mark.parametrize("config", [None, "", [{"name": "rag", "template": "t"}], 3])
def test_no_template(config: Any, of_tokenizer: Any, tmp_path: Path) -> None:
    write_config(tmp_path, chat_template=config)
    with pytest.raises(ovir.InputError, match="the folder has no chat template"):
        ChatTemplate(tmp_path, of_tokenizer)


def test_texts_of_tokens_that_no_file_has(tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match=r"uses bos_token, whose .* tokenizer_config\.json has, which is missing"):
        ChatTemplate(tmp_path, TURNS)
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(TOKENS), encoding="utf-8")
    assert ChatTemplate(tmp_path, TURNS).render("a").startswith("<s>")


FAILING = [
    ("{% for", "in its line 1: unexpected"),
    ("a\n\n{{ messages[0].content + 3 }}", "in its line 3: TypeError: can only concatenate"),
    ("{{ raise_exception('no system message') }}", "in its line 1: no system message"),
    ("{{ 1 / 0 }}", "ZeroDivisionError"),
    ("{{ none_such.content }}", "'none_such' is undefined"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
    ("{% include '/etc/passwd' %}", "no loader for this environment"),
    # what the sandbox refuses
    ("{{ ''.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is unsafe"),
    ("{{ messages.append(1) }}", "access to attribute 'append' of 'list' object is unsafe"),
    ("{{ messages[0].update(role='x') }}", "access to attribute 'update' of 'dict' object is unsafe"),
    ("{{ ''|attr('__class__') }}{{ (''|attr('__class__')).mro() }}", "unsafe|undefined"),
    ("{{ raise_exception.__globals__.os }}", "access to attribute '__globals__'"),
    ("{{ cycler.__init__.__globals__.os }}", "access to attribute '__init__'"),
    ("{{ namespace(__class__=1) }}", "rejects names with an underscore, got '__class__'"),
    ("{% set ns = namespace() %}{% set ns._x = 1 %}", "rejects names with an underscore, got '_x'"),
    ("{{ range(10 ** 9) | list }}", "Range too big"),
]


@pytest.mark.parametrize(("text", "message"), FAILING)
def test_templates_that_fail_or_leave_the_sandbox(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match=message) as caught:
        template(tmp_path, text).render(MESSAGES)
    assert caught.value.diagnostic.file == str(tmp_path / "chat_template.jinja")
    assert caught.value.diagnostic.message.startswith("the chat template fails")


@pytest.mark.parametrize(
    "text", ["'{0.__class__}'.format(messages)", "strftime_now.__code__", "''|attr('__class__')", "(range|attr('mro'))"]
)
def test_the_sandbox_shows_nothing_of_python(text: str, tmp_path: Path) -> None:
    assert template(tmp_path, f"[{{{{ {text} }}}}]").render("a") == "[]"


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "must be a text or a list of messages, got list"),
        (3, "must be a text or a list of messages, got int"),
        (["a"], "must be a text or a list of messages, got list"),
        ({"role": "user"}, "must be a text or a list of messages, got dict"),
        ([{"role": "user", "content": object()}], "messages must be plain data"),
        ([{"content": "a"}], "message 1 of the prompt must have a role, such as 'user', got None"),
        ([{"role": "user"}], "message 1 of the prompt must have content or tool_calls, got only 'role'"),
        ([{"role": "user", "contents": "a"}], "must have content or tool_calls, got only 'role', 'contents'"),
        ([{"role": "user", "content": "a"}, {"role": 3}], "message 2 of the prompt must have a role, .* got 3"),
    ],
)
def test_messages_that_cannot_be_used(messages: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match=message):
        template(tmp_path, "a").render(messages)


@pytest.mark.parametrize(("release", "usable"), [("3.1.5", False), ("3.1.6", True), ("3.2.0rc1", True), ("4.0", True)])
def test_old_sandboxes_are_refused(release: str, usable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: release)
    if usable:
        chat.require_chat()
        return
    with pytest.raises(ovir.InputError, match=r"jinja2 3\.1\.6 or newer.* 3\.1\.5 is installed"):
        chat.require_chat()


@pytest.mark.slow
def test_a_prompt_becomes_a_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_config(folder)
    (folder / "chat_template.jinja").write_text("[{{ messages[-1].content }}]", encoding="utf-8")
    expected = ovir.generate(folder, "[Who?]", max_tokens=9)
    found = ovir.generate(folder, "Who?", max_tokens=9, chat=True)
    assert (found.prompt, found.prompt_ids, found.ids) == ("[Who?]", expected.prompt_ids, expected.ids)
    assert ovir.generate(folder, MESSAGES[-1:], max_tokens=9, chat=True).prompt == "[Why?]"
    assert main(["generate", str(folder), "--prompt", "Who?", "--max-tokens", "9", "--chat"]) == 0
    assert capsys.readouterr().out == found.text + "\n"
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role }} {{ m.content }};{% endfor %}")
    command = ["generate", str(folder), "--prompt", "Who?", "--max-tokens", "1", "--system", "Be brief."]
    assert main([*command, "--chat", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prompt"] == "system Be brief.;user Who?;"
    assert main(command) == 2
    assert "--system needs --chat" in capsys.readouterr().err


# --------------------------------------------------------------------------- tokens that tokenizers add


def with_added_tokens(begins: list[int], ends: list[int]) -> ovir.Model:
    """Return a tokenizer with a token for each byte, which adds these tokens to each text."""
    text = ops.parameter([1], "string", name="text")
    elements = ops.convert(ops.string_tensor_unpack(text).outputs[2], "i32")
    first, length = np.array([0], np.int32), ops.shape_of(elements, "i32")
    added = [(np.int32(0), np.int32(len(ids)), np.array(ids, np.int32)) for ids in (begins, ends)]
    segments = [*added[0], first, length, elements, *added[1], np.array([0, 0, 0], np.int32)]
    ids = ovir.create_layer("CombineSegments", segments).outputs[2]
    return ovir.Model([ops.unsqueeze(ids, np.array([0]))], [text], "adds")


def with_sentencepiece(**attributes: bool) -> ovir.Model:
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece, of the extra tokenizers, is missing")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the fox and the dog"] * 9), model_writer=written, vocab_size=30, hard_vocab_limit=False
    )
    text = ops.parameter([1], "string", name="text")
    proto = np.frombuffer(written.getvalue(), np.uint8)
    ids = ovir.create_layer("SentencepieceTokenizer", [proto, text], attributes).outputs[1]
    return ovir.Model([ops.unsqueeze(ids, np.array([0]))], [text], "adds")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("with_tokens", "without", "begins", "ends"),
    [
        (lambda: with_added_tokens([7, 8], [9]), lambda: with_added_tokens([], []), [7, 8], [9]),
        (lambda: with_sentencepiece(add_bos=True, add_eos=True), with_sentencepiece, [1], [2]),
    ],
)
def test_the_template_alone_adds_tokens(
    with_tokens: Any, without: Any, begins: list[int], ends: list[int], folder: Path
) -> None:
    path = folder / "openvino_tokenizer.xml"
    ovir.save_model(without(), path)
    expected = Tokens(folder).encode("the fox")
    ovir.save_model(with_tokens(), path)
    tokens = Tokens(folder)
    assert tokens.encode("the fox") == [*begins, *expected, *ends]
    assert tokens.encode("the fox", plain=True) == expected
    assert tokens.encode("the fox") == [*begins, *expected, *ends]  # as before
