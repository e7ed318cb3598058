"""A small decoder with a cache of keys and values generates the same tokens as with OpenVINO's CPU plugin.

Its weights are floats, or compressed to 8 or 4 bits. Requests share no state, and a reset forgets it.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ovir

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
STEPS = 20
PROMPT = [5, 17, 42, 8]


@pytest.fixture(scope="module", params=["f32", "i8", "u4"])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    worker = Path(__file__).with_name("decoder_worker.py")
    subprocess.run([sys.executable, str(worker), str(folder), request.param], check=True, timeout=240)
    return folder


class Generation:
    """Greedy generation by one request, step by step."""

    def __init__(self, request: ovir.InferRequest, prompt: list[int] = PROMPT) -> None:
        self.request = request
        self.given = prompt
        self.past = 0
        self.tokens: list[int] = []
        self.logits: list[np.ndarray] = []

    def step(self) -> None:
        ids = np.array([self.given], np.int64)
        positions = np.arange(self.past, self.past + ids.size, dtype=np.int64)[np.newaxis]
        feeds = {"input_ids": ids, "position_ids": positions, "beam_idx": np.zeros(1, np.int32)}
        self.logits.append(self.request.infer(feeds)["logits"][0, -1])
        self.tokens.append(int(self.logits[-1].argmax()))
        self.past += ids.size
        self.given = [self.tokens[-1]]

    def run(self, steps: int = STEPS) -> list[int]:
        for _ in range(steps):
            self.step()
        return self.tokens


@pytest.mark.parametrize("keep_compressed", [False, True])
def test_same_tokens_as_openvino(decoder: Path, keep_compressed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.runtime.decompression.MAX_ELEMENTS", 16)  # the weights are small: keep them even so
    compiled = ovir.compile_model(decoder / "model.xml", keep_compressed=keep_compressed)
    expected = np.load(decoder / "expected.npz")
    generation = Generation(compiled.create_infer_request())
    assert generation.run() == expected["tokens"].tolist()
    assert len(set(generation.tokens)) > 5  # a decoder that repeats itself would be easy to agree with
    np.testing.assert_allclose(generation.logits, expected["logits"], rtol=1e-3, atol=1e-3)


def test_requests_share_no_state(decoder: Path) -> None:
    compiled = ovir.compile_model(decoder / "model.xml")
    alone = [Generation(compiled.create_infer_request(), prompt).run() for prompt in (PROMPT, [9, 3])]
    both = [Generation(compiled.create_infer_request(), prompt) for prompt in (PROMPT, [9, 3])]
    for _ in range(STEPS):
        for generation in both:
            generation.step()
    assert [generation.tokens for generation in both] == alone
    assert alone[0] != alone[1]


def test_a_reset_forgets(decoder: Path) -> None:
    request = ovir.compile_model(decoder / "model.xml").create_infer_request()
    first = Generation(request).run(5)
    assert {variable.value.shape[2] for variable in request.query_state()} == {len(PROMPT) + 4}
    request.reset_state()
    assert Generation(request).run(5) == first


def test_beams_take_their_cache_along(decoder: Path) -> None:
    """Two sequences that change places in beam_idx go on as if each had stayed."""
    compiled = ovir.compile_model(decoder / "model.xml")
    prompts = np.array([[5, 17, 42], [9, 3, 77]], np.int64)
    following = np.array([[21], [60]], np.int64)

    def step(request: ovir.InferRequest, ids: np.ndarray, past: int, beams: list[int]) -> np.ndarray:
        positions = np.broadcast_to(np.arange(past, past + ids.shape[1]), ids.shape).astype(np.int64)
        feeds = {"input_ids": ids, "position_ids": positions, "beam_idx": np.array(beams, np.int32)}
        return request.infer(feeds)["logits"]

    stayed, swapped = compiled.create_infer_request(), compiled.create_infer_request()
    for request in (stayed, swapped):
        step(request, prompts, 0, [0, 1])
    expected = step(stayed, following, 3, [0, 1])
    result = step(swapped, following[::-1], 3, [1, 0])
    np.testing.assert_allclose(result, expected[::-1], rtol=1e-5, atol=1e-5)
