"""Splits texts at the matches of patterns in OpenVINO, apart from the tests.

usage: patterns_worker.py FILE    the file has a pickled pair, patterns and texts, and then a list for each pattern with
the parts of each text, matches and what is between them.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino_tokenizers import _get_factory


def parts(pattern: str, texts: list[bytes]) -> list[list[bytes]]:
    """Return the parts of texts."""
    inputs = [ops.parameter([-1], kind) for kind in (np.int32, np.int32, np.int32, np.int32, np.uint8)]
    constant = ops.constant(np.array(bytearray(pattern.encode()), np.uint8))
    sources = [node.output(0) for node in (*inputs, constant)]
    node = _get_factory().create("RegexSplit", sources, {"behaviour": "isolate", "invert": False, "max_splits": -1})
    compiled = ov.Core().compile_model(ov.Model(node.outputs(), inputs), "CPU")
    results = []
    for text in texts:
        ends = np.int32([len(text)])
        found = compiled([np.int32([0]), np.int32([1]), np.int32([0]), ends, np.frombuffer(text, np.uint8)])
        results.append([text[begin:end] for begin, end in zip(found[2], found[3], strict=True)])
    return results


if __name__ == "__main__":
    path = Path(sys.argv[1])
    patterns, texts = pickle.loads(path.read_bytes())
    path.write_bytes(pickle.dumps([parts(pattern, texts) for pattern in patterns]))
