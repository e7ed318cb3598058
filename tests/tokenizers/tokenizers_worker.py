"""Makes a tokenizer and its detokenizer and runs them in OpenVINO, apart from the tests.

usage: tokenizers_worker.py FOLDER KIND    the folder has batches.pickle, lists of texts, and ids.pickle, lists of
batches of ids. It gets KIND_tokenizer.xml, KIND_detokenizer.xml, and KIND.pickle: for each batch of texts the outputs
of the tokenizer and the texts of its ids, and for each batch of ids the texts.
"""

import pickle
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from tokenizers import AddedToken

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.tokenizer_kinds import KINDS, bert, converted, gpt2, llama2, qwen2, unigram


def stripped(made: Any) -> tuple[ov.Model, ov.Model]:
    """Return the models of a tokenizer with special tokens that take spaces on neither side, on one, or on both."""
    tokens = [
        AddedToken(f"<{left:d}{right:d}>", lstrip=left, rstrip=right, normalized=False, special=True)
        for left, right in product((False, True), repeat=2)
    ]
    made.add_special_tokens({"additional_special_tokens": tokens})
    return converted(made)


ALL: dict[str, Callable[[], tuple[ov.Model, ov.Model]]] = {
    **KINDS,
    "gpt2-stripped": lambda: stripped(gpt2()),
    "qwen2-stripped": lambda: stripped(qwen2()),
    "llama2-stripped": lambda: stripped(llama2()),
    "bert-stripped": lambda: stripped(bert(lowercase=True)),
    "t5-stripped": lambda: stripped(unigram(splits=True)),
    "xlm-r-stripped": lambda: stripped(unigram(splits=False)),
}


def main(folder: Path, kind: str) -> None:
    compiled = []
    for model, part in zip(ALL[kind](), ("tokenizer", "detokenizer"), strict=True):
        path = folder / f"{kind}_{part}.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        compiled.append(ov.Core().compile_model(path, "CPU"))
    tokenizer, detokenizer = compiled
    results = []
    for batch in pickle.loads((folder / "batches.pickle").read_bytes()):
        texts = [batch, batch[::-1]][: len(tokenizer.inputs)]
        outputs = [np.array(array) for array in tokenizer([ov.Tensor(part) for part in texts]).values()]
        results.append((outputs, detokenizer([outputs[0]])[0].tolist()))
    decoded = [detokenizer([ids])[0].tolist() for ids in pickle.loads((folder / "ids.pickle").read_bytes())]
    (folder / f"{kind}.pickle").write_bytes(pickle.dumps((results, decoded)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
