"""Splits texts in OpenVINO, apart from the tests.

usage: patterns_worker.py FILE    the file has a pickled pair, searches and texts, and then a list for each search with
the words of each text. A search is a pattern and the attributes of RegexSplit.
"""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino_tokenizers import _get_factory


def words(pattern: str, attributes: dict[str, Any], texts: list[bytes]) -> list[list[bytes]]:
    """Return the words of texts, which are split in one run: an empty text alone is not."""
    inputs = [ops.parameter([-1], kind) for kind in (np.int32, np.int32, np.int32, np.int32, np.uint8)]
    constant = ops.constant(np.array(bytearray(pattern.encode()), np.uint8))
    sources = [node.output(0) for node in (*inputs, constant)]
    node = _get_factory().create("RegexSplit", sources, attributes)
    compiled = ov.Core().compile_model(ov.Model(node.outputs(), inputs), "CPU")
    ends = np.cumsum([len(text) for text in texts], dtype=np.int32)
    begins, rows = ends - np.int32([len(text) for text in texts]), np.arange(len(texts), dtype=np.int32)
    symbols = b"".join(texts)
    found = [
        array.tolist() for array in compiled([rows, rows + 1, begins, ends, np.frombuffer(symbols, np.uint8)]).values()
    ]
    return [
        [symbols[found[2][word] : found[3][word]] for word in range(first, last)]
        for first, last in zip(found[0], found[1], strict=True)
    ]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    searches, texts = pickle.loads(path.read_bytes())
    path.write_bytes(pickle.dumps([words(pattern, attributes, texts) for pattern, attributes in searches]))
