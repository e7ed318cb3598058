"""The folder of a language model: its tokenizer, decoder and detokenizer, and the settings beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.reading import parse_json, read_text
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError, ReadError
from ovir.generation.sampling import GENERATION, Sampling
from ovir.model import Model, read_model
from ovir.runtime.compiled import CompiledModel
from ovir.system.progress import stage

DECODER = "openvino_model.xml"
TOKENIZER = "openvino_tokenizer.xml"
DETOKENIZER = "openvino_detokenizer.xml"


def model_file(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the path of one of the models of a folder; raise ReadError if the folder or the file is missing."""
    path = Path(folder)
    if not path.is_dir():
        what = "this is a file, not the folder of a language model" if path.exists() else "there is no such folder"
        raise ReadError.of_file(path, what)
    if not (path / name).exists():  # the reader refuses what is not a file
        others = sorted({part.name for part in path.glob("openvino_*.xml")} - {*_HOW})
        what, hint = f"the folder has no {name}", _HOW[name]
        if name == DECODER and others:
            what += f", but {', '.join(others)}"
            hint = (
                "models of several parts, such as an encoder and a decoder, are not supported: only a decoder alone is"
            )
        raise ReadError.of_file(path, what, hint=hint)
    return path / name


_BY_CONVERSION = "`convert_tokenizer MODEL -o FOLDER --with-detokenizer` of the package openvino-tokenizers writes it"
_HOW = {
    DECODER: "`optimum-cli export openvino --task text-generation-with-past` writes it",
    TOKENIZER: _BY_CONVERSION,
    DETOKENIZER: _BY_CONVERSION,
}


class Tokens:
    """The tokenizer and the detokenizer of a folder: texts to ids of tokens, and back."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Compile both; raise ReadError or ModelError if one is missing or cannot be run."""
        paths = [model_file(folder, name) for name in (TOKENIZER, DETOKENIZER)]
        with stage("reading the tokenizer"):
            self._tokenizer, self._detokenizer = (CompiledModel(read_model(path)) for path in paths)
        self.rt_info = self._tokenizer.model.rt_info
        """The runtime information of the tokenizer."""
        self.size = _vocabulary(self._detokenizer.model)
        """The number of tokens, if the detokenizer shows it."""
        self.end = _id_of(self.rt_info.get("eos_token_id"))
        """The id of the token that ends a text, if the tokenizer names it."""

    @cached_property
    def _plain_tokenizer(self) -> CompiledModel:
        """Return the tokenizer without the tokens that it adds to each text."""
        model = self._tokenizer.model.clone()
        for layer in model.layers:
            if layer.type == "CombineSegments":
                for begins, ends, tokens in zip(*(layer.inputs[first:-1:3] for first in range(3)), strict=True):
                    if begins.source and tokens.source and tokens.source.layer.type == "Const":
                        model.connect(begins.source, ends)  # the segment becomes empty
            elif layer.type == "SentencepieceTokenizer":
                operator: Any = copy(layer.operator)
                operator.add_bos = operator.add_eos = False
                layer.operator = operator
        model.infer_shapes()
        return CompiledModel(model)

    def encode(self, text: object, *, plain: bool = False) -> list[int]:
        """Return the ids of a text, with ``plain`` without tokens that the tokenizer adds to each text.

        Raise InputError if it is not a text or has no tokens.
        """
        if not isinstance(text, str):
            raise InputError.usage(f"the prompt must be a text, got {type(text).__name__}")
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError.usage("the prompt is not UTF-8")
        tokenizer = self._plain_tokenizer if plain else self._tokenizer
        results = tokenizer([np.array([text], tokenizer.inputs[0].element_type.to_dtype())])
        found = results.to_dict()
        ids = found.get("input_ids", results[0])[0]
        if "attention_mask" in found:
            ids = ids[found["attention_mask"][0] != 0]  # without padding
        if not ids.size:
            raise InputError.usage("the prompt has no tokens", Place(self._tokenizer.model.path))
        return [int(number) for number in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens."""
        array: Array = np.array([ids], np.int64).reshape(1, -1)
        return str(self._detokenizer([array])[0][0])


def _vocabulary(detokenizer: Model) -> int | None:
    """Return the number of tokens in the table of a detokenizer; None if it has no such table."""
    for layer in detokenizer.layers:
        if layer.type == "VocabDecoder" and (shape := layer.inputs[1].shape).is_static:
            return int(shape[0])
    return None


class Settings:
    """The settings of generation in the JSON files of a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Read the files, which may be missing; raise ReadError for no JSON, and InputError for wrong values."""
        path = Path(folder)
        config, generation = (json_object(path / name) for name in ("config.json", GENERATION))
        texts = config.get("text_config")
        configs = [config, texts] if isinstance(texts, dict) else [config]
        ends = (item.get("eos_token_id") for item in (generation, *configs))
        ids = (_id_of(end) for listed in ends for end in (listed if isinstance(listed, list) else [listed]))
        self.ends = frozenset(number for number in ids if number is not None)
        """The ids of the tokens that end a text."""
        lengths = [item[key] for item in configs for key in _LENGTHS if type(item.get(key)) is int and item[key] > 0]
        self.context: int | None = lengths[0] if lengths else None
        """The most tokens that the decoder can see, the prompt included; None if no file says it."""
        place = Place(os.fspath(path / GENERATION))
        self.stops = stop_texts("stop_strings", generation.get("stop_strings"), place)
        """The texts that end a text before them."""
        self.ignored = {
            name: generation[name] for name, off in _IGNORED.items() if generation.get(name, off) not in (off, None)
        }
        """The settings of the file for the choice of tokens that have no effect here."""
        given = {name: generation.get(name) for name in _OF_DRAWS}
        self._defaults: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None and (value != 0 or name == "top_p")
        }
        self._draws = generation.get("do_sample") is True and generation.get("temperature") != 0
        penalty = generation.get("repetition_penalty")
        self._always = {} if penalty is None else {"repetition_penalty": penalty}
        try:
            Sampling(**self._defaults, **self._always)
        except InputError as error:
            raise InputError.usage(error.diagnostic.message, place) from None

    def sampling(self, **given: Any) -> Sampling:
        """Return the way to choose tokens: as the arguments say, and for those that are None, as the file says."""
        arguments = {name: value for name, value in given.items() if value is not None}
        if arguments.get("temperature") != 0 and (self._draws or not arguments.keys().isdisjoint(_OF_DRAWS)):
            arguments = {"temperature": 1.0, **self._defaults, **arguments}
        return Sampling(**{**self._always, **arguments})


_OF_DRAWS = ("temperature", "top_k", "top_p", "min_p")
"""The settings with which tokens are drawn."""

_IGNORED: dict[str, Any] = {
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "no_repeat_ngram_size": 0,
    "num_beams": 1,
    "min_new_tokens": 0,
    "min_length": 0,
    "typical_p": 1,
    "bad_words_ids": [],
    "suppress_tokens": [],
    "begin_suppress_tokens": [],
}
"""Settings about the choice of tokens that have no effect here, each with the value that has none anywhere."""


def stop_texts(name: str, found: object, place: Place | None = None) -> tuple[str, ...]:
    """Return the texts of a setting or argument, which may be one or a list."""
    texts = [found] if isinstance(found, str) else found or []
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise InputError.usage(f"{name} must be a text or a list of texts, got {found!r}", place)
    return tuple(filter(None, texts))


_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")


def json_object(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file, empty without a file; raise ReadError if it is not an object."""
    if not path.exists():
        return {}
    try:
        found = parse_json(read_text(path))
    except (OSError, ValueError) as error:
        raise ReadError.of_file(path, f"cannot read the settings: {error}") from None
    if not isinstance(found, dict):
        raise ReadError.of_file(path, "the file holds no JSON object")
    return found


def _id_of(value: object) -> int | None:
    """Return the id of a token that a file has as a number or a text; None for anything else."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int and value >= 0 else None
