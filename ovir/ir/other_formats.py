"""Recognizes what is given in place of an .xml: a model of another format, or the .bin."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ovir.core.reading import read_beginning


class _Format(NamedTuple):
    """A format of models: the endings of its files, how their content begins, and how they are converted."""

    name: str
    endings: tuple[str, ...]
    beginning: bytes | None
    """A regular expression; None if the content tells it from no other format."""
    conversion: str


_OVC = "convert it with `ovc {}`"
_PYTHON = "convert it in Python: `openvino.save_model(openvino.convert_model(MODEL, example_input=...), 'model.xml')`"
_FORMATS = (
    _Format("ONNX", (".onnx",), rb"\x08[\x03-\x1f]\x12", _OVC),
    _Format("TensorFlow Lite", (".tflite",), rb".{4}TFL3", _OVC),
    _Format("TensorFlow", (".pb",), None, _OVC),
    _Format("PaddlePaddle", (".pdmodel",), None, _OVC),
    _Format("PyTorch", (".pt", ".pth", ".ckpt"), rb"PK\x03\x04.{26}[^/]*/data\.pkl", _PYTHON),
    _Format("Keras", (".keras", ".h5", ".hdf5"), rb"\x89HDF\r\n", _PYTHON),
    _Format("safetensors", (".safetensors",), rb'.{8}\{"', "convert its folder with `optimum-cli export openvino`"),
    _Format("GGUF", (".gguf",), rb"GGUF", "`openvino_genai.LLMPipeline` reads and converts it"),
)


def other_format(data: bytes, path: str | None) -> tuple[str, str] | None:
    """Return what a file that is not XML is, as a message and a hint; None if nothing is known about it.

    The ending of its name decides, else its content.
    """
    stem, ending = os.path.splitext(path or "")
    if ending.lower() in (".xml", ".bin") and path is not None:
        beside = stem + {".xml": ".bin", ".bin": ".xml"}[ending.lower()]
        if read_beginning(beside, 1) == b"<":
            if ending.lower() == ".bin":
                return "this is the .bin of a model", f"give {beside}; its .bin is found next to it"
            return f"the .xml and the .bin are exchanged: the topology is in {beside}", "exchange their names"
    shown = f'"{path}"' if path is not None and " " in path else path or "MODEL"
    by_name = [form for form in _FORMATS if ending.lower() in form.endings]
    by_content = [form for form in _FORMATS if form.beginning is not None and re.match(form.beginning, data, re.DOTALL)]
    for form in (*by_name, *by_content):
        return f"this is a model of the format {form.name}, not the .xml of an IR", form.conversion.format(shown)
    return None
