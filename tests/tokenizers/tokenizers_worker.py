"""Makes a tokenizer and its detokenizer and runs them in OpenVINO, apart from the tests.

usage: tokenizers_worker.py FOLDER KIND    the folder has batches.pickle, lists of texts. It gets KIND_tokenizer.xml,
KIND_detokenizer.xml, and KIND.pickle: for each batch the outputs of the tokenizer, and the texts of its ids.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
import openvino as ov

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.tokenizer_kinds import KINDS


def main(folder: Path, kind: str) -> None:
    compiled = []
    for model, part in zip(KINDS[kind](), ("tokenizer", "detokenizer"), strict=True):
        path = folder / f"{kind}_{part}.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        compiled.append(ov.Core().compile_model(path, "CPU"))
    tokenizer, detokenizer = compiled
    results = []
    for batch in pickle.loads((folder / "batches.pickle").read_bytes()):
        texts = [batch, batch[::-1]][: len(tokenizer.inputs)]
        outputs = [np.array(array) for array in tokenizer([ov.Tensor(part) for part in texts]).values()]
        results.append((outputs, detokenizer([outputs[0]])[0].tolist()))
    (folder / f"{kind}.pickle").write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
