"""Runs of one model in a worker: the model that it finds, the inputs that it loads, and batches."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.worker_inputs import CannotBeRestored, Fails, counter

import ovir
from ovir import opset13 as ops
from ovir.workers import model_runs
from ovir.workers.batches import find_batch_axis
from ovir.workers.model_runs import Input, ModelRuns, PickledInput, load
from ovir.workers.worker import SetUpError, UnreachableError

ROW = np.float32([[1, 2]])


def doubled() -> ovir.CompiledModel:
    x = ops.parameter("?,2", "f32", name="x")
    return ovir.compile_model(ovir.Model([ops.add(x, x)], [x], "doubled"))


@pytest.fixture
def runs(tmp_path: Path) -> ModelRuns:
    compiled = doubled()
    recipe = compiled.recipe()
    recipe.write(str(tmp_path / "model.recipe"))
    return ModelRuns(recipe.token, str(tmp_path / "model.recipe"), make_recipe=lambda: recipe)


def test_a_worker_finds_the_model_by_its_file_or_gets_it(runs: ModelRuns, tmp_path: Path) -> None:
    assert runs(Input([ROW], "a")).arrays[0].tolist() == [[2, 4]]
    assert runs(Input([ROW], "a")).state is None
    other = doubled().recipe()
    for away in (replace(runs, token="1", path="missing"), replace(runs, token=other.token)):
        with pytest.raises(UnreachableError):
            away(Input([ROW], "a"))
    sent = replace(runs, token=other.token, path="missing", make_recipe=lambda: other).with_content()
    assert sent(Input([ROW], "a")).arrays[0].tolist() == [[2, 4]]
    assert sent.__getstate__()["make_recipe"] is None


def test_requests_are_kept_while_their_model_is_in_use(runs: ModelRuns) -> None:
    runs(Input([ROW], "a"))
    compiled = runs._compiled()
    request = model_runs._request(runs.token, compiled)
    assert model_runs._request(runs.token, compiled) is request
    again = doubled()
    assert model_runs._request("other", again).compiled is again
    assert model_runs._request(runs.token, compiled) is request
    assert model_runs._request("another", again) is not request
    assert "other" not in {token for token, _ in model_runs._requests}


def test_a_session_goes_on_with_the_state_of_its_last_run() -> None:
    recipe = counter().recipe()
    runs = ModelRuns(recipe.token, "", recipe=recipe)
    one = np.ones(2, np.float32)
    first = runs(Input([one], "a", session="s"))
    assert first.state is not None
    later = Input([one], "b", session="s").after(first)
    assert (later.name, later.state) == ("b", first.state)
    assert [runs(item).arrays[0][0] for item in (later, Input([one], "c", session="s"))] == [2, 1]


@pytest.mark.parametrize(("name", "write"), [("a.npz", lambda path: np.savez(path, x=ROW)), ("a.NPY", None)])
def test_files_of_inputs(name: str, write: Any, tmp_path: Path, runs: ModelRuns) -> None:
    path = tmp_path / name
    if write is None:
        with path.open("wb") as file:
            np.save(file, ROW)
    else:
        write(path)
    found = load(path, doubled().model)
    assert isinstance(found, Mapping) == (write is not None)
    content = runs.item_with_content(Input(str(path), "a")).value
    arrays = [x["x"] if isinstance(x, Mapping) else x for x in (found, content)]
    assert [array.tolist() for array in arrays] == [ROW.tolist()] * 2
    with pytest.raises(UnreachableError):
        load(tmp_path / "missing.npy", doubled().model)
    given = Input([ROW], "a")
    assert runs.item_with_content(given) is given


def test_inputs_that_load_themselves() -> None:
    assert isinstance(PickledInput.of(Fails()), PickledInput)
    for value, message in (
        (Fails(), "its method load failed: KeyError: 'nothing here'"),
        (PickledInput.of(Fails()), "its method load failed: KeyError: 'nothing here'"),
        (PickledInput.of(CannotBeRestored()), "a worker cannot restore the input: ImportError: no such thing"),
    ):
        with pytest.raises(ovir.InputError) as caught:
            load(value, doubled().model)
        assert caught.value.diagnostic.message == message


def test_items_of_a_batch_share_their_time(runs: ModelRuns) -> None:
    stacked = replace(runs, batched=find_batch_axis(doubled().model))
    items = [Input([ROW * number], str(number)) for number in (1, 2, 3)]
    answers = stacked.on_all(items)
    assert [answer.result.arrays[0].tolist() for answer in answers] == [[[2, 4]], [[4, 8]], [[6, 12]]]
    assert len({answer.seconds for answer in answers}) == 1
    assert all(answer.seconds > 0 for answer in answers)
    items[1] = Input([ROW[0]], "faulty")
    answers = stacked.on_all(items)
    assert [answer.error is None for answer in answers] == [True, False, True]
    assert [answer.result.arrays[0].tolist() for answer in answers[::2]] == [[[2, 4]], [[6, 12]]]


def test_a_model_that_mixes_inputs_is_found_in_its_first_batch() -> None:
    x = ops.parameter("?,2", "f32", name="x")
    compiled = ovir.compile_model(ovir.Model([ops.softmax(x, 0)], [x], "mixed"))
    recipe = compiled.recipe()
    runs = ModelRuns(recipe.token, "", recipe=recipe, batched=find_batch_axis(compiled.model))
    items = [Input([ROW], "a"), Input([3 * ROW], "b")]
    for _ in range(2):
        with pytest.raises(SetUpError, match="layers mix the inputs"):
            runs.on_all(items)
