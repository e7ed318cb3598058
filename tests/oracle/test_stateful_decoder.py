"""A small decoder with a cache of keys and values generates the same tokens as with OpenVINO's CPU plugin.

Its weights are floats, or compressed to 8 or 4 bits. Requests share no state, and a reset forgets it.
"""

import numpy as np
import pytest

import ovir
from benchmarks.real_models import Weights, decoder, decoder_inputs
from ovir.debugging.engines.process import EngineProcess

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
STEPS = 20
PROMPT = [5, 17, 42, 8]


@pytest.fixture(scope="module", params=["f32", "int8", "int4_asym"])
def model(request: pytest.FixtureRequest) -> ovir.Model:
    return decoder(Weights(request.param), width=128, wide=256, layers=2, heads=8, groups=2, vocabulary=96)[0]


class Generation:
    """Greedy generation by one request, step by step."""

    def __init__(self, request: ovir.InferRequest, prompt: list[int] = PROMPT) -> None:
        self.request = request
        self.given = prompt
        self.past = 0
        self.tokens: list[int] = []
        self.logits: list[np.ndarray] = []

    def step(self) -> dict[str, np.ndarray]:
        """Append the next token, and return the inputs that it was made from."""
        feeds = decoder_inputs(np.array([self.given], np.int64), self.past)
        self.logits.append(self.request.infer(feeds)["logits"][0, -1])
        self.tokens.append(int(self.logits[-1].argmax()))
        self.past += len(self.given)
        self.given = [self.tokens[-1]]
        return feeds

    def run(self, steps: int = STEPS) -> list[int]:
        for _ in range(steps):
            self.step()
        return self.tokens


@pytest.mark.parametrize("keep_compressed", [False, True])
def test_same_tokens_as_openvino(
    model: ovir.Model, keep_compressed: bool, monkeypatch: pytest.MonkeyPatch, openvino: EngineProcess
) -> None:
    monkeypatch.setattr("ovir.runtime.decompression.MAX_ELEMENTS", 16)  # the weights are small: keep them even so
    compiled = ovir.compile_model(model, keep_compressed=keep_compressed)
    generation = Generation(compiled.create_infer_request())
    with openvino.compiled(model) as loaded:
        for number in range(STEPS):
            feeds = generation.step()
            inputs = [feeds[port.any_name] for port in model.inputs]
            expected = loaded.infer(inputs, keeps_state=number > 0)[0][0, -1]
            np.testing.assert_allclose(generation.logits[-1], expected, rtol=1e-3, atol=1e-3)
            assert generation.tokens[-1] == expected.argmax()
    assert len(set(generation.tokens)) > 5  # a decoder that repeats itself would be easy to agree with


def test_requests_share_no_state(model: ovir.Model) -> None:
    compiled = ovir.compile_model(model)
    alone = [Generation(compiled.create_infer_request(), prompt).run() for prompt in (PROMPT, [9, 3])]
    both = [Generation(compiled.create_infer_request(), prompt) for prompt in (PROMPT, [9, 3])]
    for _ in range(STEPS):
        for generation in both:
            generation.step()
    assert [generation.tokens for generation in both] == alone
    assert alone[0] != alone[1]


def test_a_reset_forgets(model: ovir.Model) -> None:
    request = ovir.compile_model(model).create_infer_request()
    first = Generation(request).run(5)
    assert {variable.value.shape[2] for variable in request.query_state()} == {len(PROMPT) + 4}
    request.reset_state()
    assert Generation(request).run(5) == first


def test_beams_take_their_cache_along(model: ovir.Model) -> None:
    """Two sequences that change places in beam_idx go on as if each had stayed."""
    compiled = ovir.compile_model(model)
    prompts = np.array([[5, 17, 42], [9, 3, 77]], np.int64)
    following = np.array([[21], [60]], np.int64)

    def step(request: ovir.InferRequest, ids: np.ndarray, past: int, beams: list[int]) -> np.ndarray:
        feeds = {name: np.repeat(one, 2, axis=0) for name, one in decoder_inputs(ids[:1], past).items()}
        return request.infer({**feeds, "input_ids": ids, "beam_idx": np.array(beams, np.int32)})["logits"]

    stayed, swapped = compiled.create_infer_request(), compiled.create_infer_request()
    for request in (stayed, swapped):
        step(request, prompts, 0, [0, 1])
    expected = step(stayed, following, 3, [0, 1])
    result = step(swapped, following[::-1], 3, [1, 0])
    np.testing.assert_allclose(result, expected[::-1], rtol=1e-5, atol=1e-5)
