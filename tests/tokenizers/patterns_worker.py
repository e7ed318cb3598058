"""Splits texts in OpenVINO, apart from the tests."""

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino_tokenizers import _get_factory


def split_by_all(searches: list[tuple[str, dict[str, Any]]], texts: list[bytes]) -> list[list[list[bytes]]]:
    """Return the words of each text for each search, all from one run of one model; an empty text alone is not split."""
    inputs = [ops.parameter([-1], kind) for kind in (np.int32, np.int32, np.int32, np.int32, np.uint8)]
    nodes = []
    for pattern, attributes in searches:
        constant = ops.constant(np.array(bytearray(pattern.encode()), np.uint8))
        sources = [node.output(0) for node in (*inputs, constant)]
        nodes.append(_get_factory().create("RegexSplit", sources, attributes))
    compiled = ov.Core().compile_model(ov.Model([end for node in nodes for end in node.outputs()], inputs), "CPU")
    ends = np.cumsum([len(text) for text in texts], dtype=np.int32)
    begins, rows = ends - np.int32([len(text) for text in texts]), np.arange(len(texts), dtype=np.int32)
    symbols = b"".join(texts)
    results = compiled([rows, rows + 1, begins, ends, np.frombuffer(symbols, np.uint8)])
    arrays = (results[index].tolist() for index in range(len(compiled.outputs)))
    every = []
    for node in nodes:
        rows_of_texts, (starts, stops, *_) = [next(arrays), next(arrays)], [next(arrays) for _ in node.outputs()[2:]]
        found = [symbols[start:stop] for start, stop in zip(starts, stops, strict=True)]
        every.append([found[first:last] for first, last in zip(*rows_of_texts, strict=True)])
    return every
