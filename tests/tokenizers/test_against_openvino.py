"""Ids, masks and texts are equal to those of openvino_tokenizers."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ovir
from tests.tokenizer_texts import texts

for _package in ("openvino_tokenizers", "tokenizers", "transformers", "sentencepiece", "regex"):
    pytest.importorskip(_package, reason=f"{_package}, which makes or runs tokenizers, is not installed")
pytestmark = pytest.mark.oracle

WORKER = Path(__file__).parent / "tokenizers_worker.py"
KINDS = (
    "gpt2", "gpt2-left", "gpt2-padded", "qwen2", "llama2", "bert-cased", "bert-uncased", "bert-pair", "t5", "xlm-r",
    "words", "sp-unigram", "sp-bpe",
)  # fmt: skip
BATCHES = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizers")
    (path / "batches.pickle").write_bytes(pickle.dumps(batches()))
    return path


def batches() -> list[list[str]]:
    """Return batches in which a text is not empty; OpenVINO cannot run the tokenizer of pairs on others."""
    draw = random.Random(5)
    sizes = [1 if draw.random() < 0.7 else draw.randint(2, 12) for _ in range(BATCHES)]
    drawn = iter(texts(sum(sizes)))
    return [[next(drawn) for _ in range(size - 1)] + [next(drawn) + "a"] for size in sizes]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_masks_and_texts(folder: Path, kind: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", WORKER, folder, kind], check=True)
    expected = pickle.loads((folder / f"{kind}.pickle").read_bytes())
    tokenizer = ovir.compile_model(folder / f"{kind}_tokenizer.xml")
    detokenizer = ovir.compile_model(folder / f"{kind}_detokenizer.xml")
    for batch, (outputs, decoded) in zip(batches(), expected, strict=True):
        found = tokenizer([np.array(part, object) for part in (batch, batch[::-1])[: len(tokenizer.inputs)]])
        assert [array.dtype for array in found.values()] == [array.dtype for array in outputs]
        for name, one, other in zip(found, found.values(), outputs, strict=True):
            assert np.array_equal(one, other), (name, batch)
        assert detokenizer([outputs[0]])[0].tolist() == decoded, batch


def test_files_have_no_faults(folder: Path) -> None:
    subprocess.run([sys.executable, "-W", "ignore", WORKER, folder, "gpt2"], check=True)
    for part in ("tokenizer", "detokenizer"):
        assert [d for d in ovir.check(folder / f"gpt2_{part}.xml") if d.severity == ovir.Severity.ERROR] == []
