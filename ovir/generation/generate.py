"""``ovir.generate``: text from a prompt and the folder of a language model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, TypedDict, Unpack

import numpy as np

from ovir.compiling import compile_model, require_engine
from ovir.core.json_fields import json_fields
from ovir.debugging.engines.process import EngineProcess
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError, require_counts
from ovir.diagnostics.wording import plural
from ovir.generation.chat import ChatTemplate, Prompt, require_chat
from ovir.generation.decoders import Decoder, in_ovir, on_engine
from ovir.generation.folder import DECODER, Settings, Tokens, model_file, stop_texts
from ovir.generation.sampling import MAX_TOKENS
from ovir.generation.streaming import TextStream
from ovir.generation.token_comparison import TokenComparison
from ovir.model import Model, read_model
from ovir.system.progress import stage

Folder = str | os.PathLike[str]


@dataclass
class Generated:
    """The result of a language model for a prompt; ``str`` returns its text."""

    text: str
    """The text after the prompt."""
    ids: list[int]
    """The tokens of the text, with the one that ended it."""
    prompt_ids: list[int]
    """The tokens of the prompt."""
    ended: bool
    """Whether a token, a text that stops it or ``on_text`` ended the text; otherwise as many tokens were allowed."""
    seconds: list[float] = field(repr=False)
    """The time of each token; the first includes the prompt."""
    comparison: TokenComparison | None = None
    """The comparison with another decoder, if one was asked for."""
    ignored: dict[str, Any] = field(default_factory=dict)
    """Settings of ``generation_config.json`` about the choice of tokens that had no effect."""
    prompt: str = ""
    """The text that the tokenizer got: the prompt, as it is or in the chat template."""

    @property
    def tokens_per_second(self) -> float:
        """Return the tokens per second after the first token, which waits for the prompt."""
        seconds = self.seconds[1:] or self.seconds
        return len(seconds) / max(sum(seconds), 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        found = json_fields(self, "text", "prompt", "ids", "prompt_ids", "ended")
        found |= {"prompt_seconds": self.seconds[0], **json_fields(self, "tokens_per_second", "ignored")}
        return found if self.comparison is None else found | json_fields(self, "comparison")

    def __str__(self) -> str:
        return self.text


class TextGenerator:
    """The language model of a folder, which is read and compiled once, with its first text.

    ``folder``, ``engine`` and ``threads`` are those of ``ovir.generate``. Texts must not overlap in time.

    Raises ReadError if the folder or a file is missing, and InputError for settings or an engine that cannot be used.
    """

    def __init__(self, folder: Folder, *, engine: str = "numpy", threads: int | None = None) -> None:
        require_engine(engine)
        self._folder, self._engine, self._threads = folder, engine, threads
        self._settings = Settings(folder)
        self._path = model_file(folder, DECODER)
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({os.fspath(self._folder)!r}, engine={self._engine!r})"

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self._folder)

    @cached_property
    def _decoder(self) -> Decoder:
        with stage("reading the decoder"):
            model = read_model(self._path)
            return Decoder(model, in_ovir(compile_model(model, engine=self._engine, threads=self._threads)))

    @cached_property
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self._folder, self._tokens.rt_info.get("chat_template"))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise InputError if another text is being made, whose state the decoder holds."""
        if not self._lock.acquire(blocking=False):
            hint = "another TextGenerator of the folder makes texts at the same time"
            raise InputError.usage("this generator is making another text", Place(os.fspath(self._path)), hint=hint)
        try:
            yield
        finally:
            self._lock.release()

    def generate(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        chat: bool = False,
        against: Folder | None = None,
        config: Mapping[str, str] | None = None,
        on_text: Callable[[str], object] | None = None,
    ) -> Generated:
        """Return the text that the language model makes of a prompt; ``ovir.generate`` describes the arguments."""
        settings = self._settings
        how = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        sampling = settings.sampling(**how, repetition_penalty=repetition_penalty, seed=seed)
        stops = settings.stops if stop is None else stop_texts("stop", stop)
        require_counts(max_tokens=max_tokens)
        if config and not _is_device(against):
            raise InputError.usage(
                "has properties of a device, and there is none to compare with: openvino:DEVICE", option="config"
            )
        if chat:
            require_chat()
        engine: AbstractContextManager[EngineProcess | None] = nullcontext()
        if _is_device(against):
            engine = EngineProcess(str(against), config)
        with self._alone(), engine as device:
            if device is not None:
                device.open()
            tokens, decoder = self._tokens, self._decoder
            text = self._template.render(prompt) if chat else prompt
            ids = tokens.encode(text, plain=chat)
            _require_vocabulary(decoder, tokens, ids, self._path)
            count = _most_tokens(max_tokens, len(ids), settings.context, self._path)
            other = None if against is None else _other(against, device, self._path, decoder.model)
            ends = settings.ends if tokens.end is None else settings.ends | {tokens.end}
            stream = TextStream(tokens.decode, stops)
            emit = on_text or (lambda piece: None)
            result = Generated("", [], ids, ended=False, seconds=[], comparison=other and other[1])
            result.prompt, result.ignored = str(text), settings.ignored
            numbers = np.random.default_rng(seed or 0)
            decoder.forget()
            fed, is_refused = ids, False
            while len(result.ids) < count and not result.ended:
                start, draw = perf_counter(), numbers.random()
                logits = decoder.step(fed)
                token = sampling.choose(logits, draw, decoder.seen)
                result.seconds.append(perf_counter() - start)
                if other is not None:
                    logits_there = other[0].step(fed)
                    there = sampling.choose(logits_there, draw, decoder.seen)
                    other[1].add(logits, logits_there, (token, there), tokens.decode)
                result.ids.append(token)
                fed = [token]
                if token not in ends and (piece := stream.add(token)):
                    is_refused = emit(piece) is True
                result.ended = token in ends or stream.stopped or is_refused
            if not is_refused and (piece := stream.close()):
                emit(piece)
        result.text = stream.text
        result.ended |= stream.stopped
        return result


class GenerationOptions(TypedDict, total=False):
    """Options of the generation of a text; the value None means the same as no value."""

    max_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float | None
    seed: int | None
    stop: str | Sequence[str] | None
    chat: bool
    against: Folder | None
    config: Mapping[str, str] | None
    on_text: Callable[[str], object] | None


def generate(
    folder: Folder,
    prompt: Prompt,
    *,
    engine: str = "numpy",
    threads: int | None = None,
    **options: Unpack[GenerationOptions],
) -> Generated:
    """Return the text that the language model in a folder makes of a prompt; TextGenerator makes several.

    The folder has ``openvino_model.xml``, ``openvino_tokenizer.xml`` and ``openvino_detokenizer.xml``, as optimum-intel
    writes them. The text ends with a token that ends texts, before one of the texts of ``stop``, which by default are
    the ``stop_strings`` of ``generation_config.json``, after ``max_tokens`` (by default 100), where the context of the
    model is full, or when ``on_text``, which is called with each piece of text, returns True.

    The best token is taken at each step. With ``temperature``, ``top_k``, ``top_p`` or ``min_p``, or if that file says
    ``do_sample``, one is drawn with the random numbers of ``seed``; the file has the values of those that are not
    given. ``temperature=0`` takes the best token in any case. ``repetition_penalty`` divides the logits above 0 of all
    tokens until now, and multiplies those below.

    With ``chat``, the chat template of the folder makes the prompt. It gets a text as the message of a user, or a list
    of messages, such as ``[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]``.

    ``engine`` and ``threads`` are those of ``compile_model``. ``against`` is another decoder, which is fed with the
    same tokens: ``"openvino:DEVICE"``, with properties in ``config``, or a second folder.

    Raises InputError for arguments that cannot be used, ReadError and ModelError for models that cannot be read or run,
    and RunError for a run that fails.
    """
    return TextGenerator(folder, engine=engine, threads=threads).generate(prompt, **options)


# --------------------------------------------------------------------------- the other decoder


def _is_device(against: Folder | None) -> bool:
    return isinstance(against, str) and against.partition(":")[0] == "openvino"


def _other(against: Folder, device: EngineProcess | None, path: Path, model: Model) -> tuple[Decoder, TokenComparison]:
    """Return the decoder to compare with, and a comparison that has no steps yet."""
    if device is None:
        other = read_model(model_file(against, DECODER))
        return Decoder(other, in_ovir(compile_model(other))), TokenComparison(os.fspath(against))
    with stage(f"compiling for {device.device}"):
        loaded = device.load(path, types=[port.element_type for port in model.inputs])
    return Decoder(model, on_engine(loaded)), TokenComparison(device.description, loaded.precision)


# --------------------------------------------------------------------------- what does not fit together


def _require_vocabulary(decoder: Decoder, tokens: Tokens, ids: list[int], path: Path) -> None:
    """Raise InputError if the tokenizer has tokens that the decoder does not know."""
    known = decoder.vocabulary
    if known is not None and tokens.size is not None and tokens.size > known:
        what = f"the tokenizer has {tokens.size:,} tokens, the decoder {known:,} logits"
    elif known is not None and max(ids) >= known:
        what = f"the prompt has token {max(ids)}, the decoder has {known:,} logits"
    else:
        return
    hint = "the tokenizer belongs to another model"
    raise InputError.usage(f"the vocabularies differ: {what}", Place(os.fspath(path)), hint=hint)


def _most_tokens(wanted: int | None, prompt: int, context: int | None, path: Path) -> int:
    """Return the number of tokens to generate; raise InputError if the model's context does not hold them."""
    if context is None:
        return wanted or MAX_TOKENS
    left = context - prompt
    if left < (wanted or 1):
        place, has = Place(os.fspath(path)), f"the context of the model is {plural(context, 'token')}: the prompt has"
        if wanted is None:
            raise InputError.usage(f"{has} {prompt:,}, which fills it", place)
        reason = f"is {wanted:,}, but {has} {prompt:,}, so there is room for {max(left, 0):,}"
        raise InputError.usage(reason, place, option="max_tokens")
    return min(wanted or MAX_TOKENS, left)
