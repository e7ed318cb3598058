"""The chat template of a folder, which makes the prompt of a conversation as the language model was trained on it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ovir.core.reading import read_text
from ovir.diagnostics.codes import NO_ENGINE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ReadError, require_packages
from ovir.generation.folder import TOKENIZER, json_object

if TYPE_CHECKING:
    from jinja2 import Environment

Prompt = str | Sequence[Mapping[str, Any]]
"""A text, or for a chat template also a conversation: messages with ``role`` and ``content``."""

TEMPLATE = "chat_template.jinja"
CONFIG = "tokenizer_config.json"
_TOKENS = "special_tokens_map.json"
_NAMES = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
_REASONING = ("reasoning_content", "thinking", "reasoning")
_SAFE = 3, 1, 6
"""The release of jinja2 since which no way out of its sandbox is known."""


def require_chat() -> None:
    """Raise InputError if jinja2, which computes templates, is missing or too old for untrusted templates."""
    require_packages("a chat template", "chat", "jinja2")
    from importlib.metadata import version  # most texts need no template

    found = version("jinja2")
    if tuple(int(part) for part in found.split(".")[:3] if part.isdecimal()) < _SAFE:
        oldest = ".".join(map(str, _SAFE))
        message = f"templates need jinja2 {oldest} or newer, as older sandboxes are not safe; {found} is installed"
        raise InputError(diagnose(NO_ENGINE, message, hint='pip install "ovir[chat]"'))


class ChatTemplate:
    """The template of a folder: in a file of its own, in the configuration of the tokenizer, or in the tokenizer."""

    def __init__(self, folder: str | os.PathLike[str], of_tokenizer: object) -> None:
        """Find and compile the template; ``of_tokenizer`` is the one in the runtime information of the tokenizer.

        Raise InputError if there is none, or if it is not a template.
        """
        require_chat()
        path = Path(folder)
        config = json_object(path / CONFIG)
        self._place, text = _found(path, config, of_tokenizer)
        special = {**config, **json_object(path / _TOKENS)}
        texts = [entry.get("content") if isinstance(entry := special.get(name), dict) else entry for name in _NAMES]
        self._tokens = {name: text for name, text in zip(_NAMES, texts, strict=True) if isinstance(text, str)}
        with self._failing():
            from jinja2.meta import find_undeclared_variables

            unknown = find_undeclared_variables(_environment().parse(text)) & {*_NAMES}
            self._template = _environment().from_string(text)
        if unknown and not (path / CONFIG).exists() and not (path / _TOKENS).exists():
            what = f"the chat template uses {min(unknown)}, whose text {CONFIG} has, which is missing"
            raise InputError.usage(what, self._place)

    def render(self, messages: Prompt) -> str:
        """Return the prompt of a conversation, which ends where the answer of the model begins."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        try:
            plain = json.loads(json.dumps(messages))  # a template is to see no object of the caller
        except (TypeError, ValueError) as error:
            raise InputError.usage(f"messages must be plain data, such as texts and lists: {error}") from None
        if not isinstance(plain, list) or not plain or not all(isinstance(item, dict) for item in plain):
            raise InputError.usage(f"the prompt must be a text or a list of messages, got {type(messages).__name__}")
        for number, message in enumerate(plain, 1):
            if not isinstance(role := message.get("role"), str) or not role:
                raise InputError.usage(f"message {number} of the prompt must have a role, such as 'user', got {role!r}")
            if not {"content", "tool_calls"} & {*message}:
                names = ", ".join(map(repr, message))
                raise InputError.usage(
                    f"message {number} of the prompt must have content or tool_calls, got only {names}"
                )
        plain = list(map(_for_template, plain))
        with self._failing():
            return self._template.render(
                **self._tokens, messages=plain, tools=None, documents=None, add_generation_prompt=True
            )

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise InputError for any exception: a template may compute anything, and refuse messages."""
        try:
            yield
        except Exception as error:
            import traceback  # only needed here

            frames = traceback.extract_tb(error.__traceback__)
            line = getattr(error, "lineno", None) or next(
                (frame.lineno for frame in reversed(frames) if frame.filename == "<template>"), None
            )
            kind = "" if type(error).__module__.startswith("jinja2") else f"{type(error).__name__}: "
            where = "" if line is None else f" in its line {line}"
            raise InputError.usage(f"the chat template fails{where}: {kind}{error}", self._place) from None


def _for_template(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as transformers gives it to templates: without entries that are None, which they would write as
    a word, and with its reasoning under the names that they may read."""
    entries = {name: value for name, value in message.items() if value is not None}
    reasoning = next((entries[name] for name in _REASONING if name in entries), None)
    return entries if reasoning is None else {"thinking": reasoning, **entries, "reasoning_content": reasoning}


def _found(folder: Path, config: Mapping[str, Any], of_tokenizer: object) -> tuple[Place, str]:
    """Return the place and the text of the template of a folder; raise InputError if it has none."""
    path = folder / TEMPLATE
    if path.exists():
        try:
            return Place(os.fspath(path)), read_text(path)
        except (OSError, ValueError) as error:
            raise ReadError.of_file(path, f"cannot read the chat template: {error}") from None
    found = config.get("chat_template") or of_tokenizer
    if isinstance(found, list):  # templates for several purposes
        named = {item.get("name"): item.get("template") for item in found if isinstance(item, dict)}
        found = named.get("default")
    if isinstance(found, str) and found:
        return Place(os.fspath(folder / (CONFIG if config.get("chat_template") else TOKENIZER))), found
    hint = f"it would be in {TEMPLATE} or {CONFIG}; models that continue texts have none: give the prompt as it is"
    raise InputError.usage("the folder has no chat template", Place(os.fspath(folder)), hint=hint)


@cache
def _environment() -> Environment:
    """Return the sandbox of templates, with the names that the package transformers gives them."""
    from jinja2 import TemplateError, nodes, parser
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        """The tag around text of the model, which only training looks at."""

        tags = {"generation"}  # noqa: RUF012  # as the base class has it

        def parse(self, parser: parser.Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    class PublicNamespace(Namespace):
        """A namespace without names that Python or jinja2 may take for its own."""

        def __setitem__(self, name: str, value: Any) -> None:
            if name.startswith("_"):
                raise SecurityError(f"a namespace rejects names with an underscore, got {name!r}")
            super().__setitem__(name, value)

    def namespace(*args: Any, **kwargs: Any) -> Namespace:
        made = PublicNamespace()
        for name, value in dict(*args, **kwargs).items():
            made[name] = value
        return made

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals.update(
        namespace=namespace, raise_exception=refuse, strftime_now=lambda form: datetime.now().strftime(form)
    )
    return environment
