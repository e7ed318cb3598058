"""What is drawn for random models: numbers, shapes, values, and what a file declares of them."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from ovir.core.arrays import Array
from ovir.core.element_types import ELEMENT_TYPES, ElementType, value_range
from ovir.core.shapes import PartialShape
from ovir.diagnostics.errors import OvirError
from ovir.fuzzing.cases import _declared, _with_extremes, _with_ties, _within, make_case
from ovir.fuzzing.device_map import places_of
from ovir.fuzzing.fuzz import _is_repeated
from ovir.fuzzing.making import VERSIONS, Make, random_array, text_of
from ovir.fuzzing.models import MAP, NAMES, ROUND, Choice
from ovir.ops.base.domains import Domain


def drawing(seed: int = 0, kind: str = "Add", **options: Any) -> Make:
    return Make(kind, random.Random(seed), **options)


# --------------------------------------------------------------------------- numbers of models


def test_one_of_eight_models_is_a_graph_and_the_others_take_turns() -> None:
    versions = [Choice().version(number) for number in range(8 * len(NAMES))]
    assert {number % 8 for number, version in enumerate(versions) if version is None} == {7}
    assert [version for version in versions if version is not None] == NAMES * 7


def test_numbers_of_a_map_go_through_all_places() -> None:
    choice = Choice("^(Abs|Gather|LogicalNot)-", ["f32", "i64", "boolean"])
    places = choice.places()
    assert set(places) == {(name, kind) for name in choice.versions for kind in choice.types_of(name)}
    assert {name for name, _ in places} == {"Abs-1", "Gather-1", "Gather-7", "Gather-8", "LogicalNot-1"}
    assert len({*places.values()}) == len(places)
    for (name, kind), number in places.items():
        assert MAP <= number < MAP + ROUND
        for later in (number, number + ROUND):
            assert choice.version(later) == name
            with suppress(OvirError):  # some are not legal
                if (made := choice.make(later)) is not None:
                    assert (name, kind) in places_of(made[0].layers)


def test_models_of_wanted_types_have_inputs_of_them_besides_indices() -> None:
    choice, held = Choice("^Gather-8$", ["f32"]), set[str]()
    for number in range(100 * len(NAMES)):
        with suppress(OvirError):  # some are not legal
            if (made := choice.make(number)) is not None:
                held |= {kind for _, kind in places_of(made[0].layers)}
    assert held == {"f32"}


def test_about_one_of_five_models_is_repeated_whatever_its_operation() -> None:
    assert 1900 < sum(map(_is_repeated, range(10_000))) < 2100
    of_one = sum(map(_is_repeated, range(3, 10_000 * len(VERSIONS), len(VERSIONS))))
    assert 1900 < of_one < 2100


def test_rounds_take_turns_with_usual_numbers_ties_and_extremes() -> None:
    index, found = NAMES.index("Floor-1"), list[list[Array]]([[], [], []])
    for round_ in range(60):
        seed = round_ * len(NAMES) + index
        with suppress(OvirError):
            _, feeds = Choice("Floor").make(seed + seed // 7) or (None, [])
            found[round_ % 3] += [array.astype(np.float64).ravel() for array in feeds if array.dtype.kind == "f"]
    usual, ties, extreme = map(np.concatenate, found)
    assert (ties[np.isfinite(ties)] * 2 % 1 == 0).all()
    assert not (usual[np.isfinite(usual)] * 2 % 1 == 0).all()
    assert (np.abs(extreme) > 1e9).mean() > 0.1 > (np.abs(usual) > 1e9).mean()


# --------------------------------------------------------------------------- sizes and shapes


def test_shapes_in_words() -> None:
    make = drawing()
    make.set(N=2, C=3)
    assert make.shape("N C 4*C+1 N*C+N*2") == (2, 3, 13, 10)
    ranks = Counter(len(drawing(seed).shape("... A")) for seed in range(400))
    assert {*ranks} == {1, 2, 3}
    assert 150 < ranks[1] < 250
    some = drawing(3)
    assert some.shape("... A ...") == (*some.shape("..."), *some.shape("A"), *some.shape("..."))


@pytest.mark.parametrize(("is_small", "sizes"), [(False, [0, 1, 2, 3, 4, 5, 7, 11, 17]), (True, [0, 1, 2, 3])])
def test_sizes(is_small: bool, sizes: list[int]) -> None:
    make = drawing(is_small=is_small)
    found = Counter(make.size() for _ in range(4000))
    assert sorted(found) == sizes
    assert found.most_common(1)[0][0] == (1 if is_small else 2)


def test_axes() -> None:
    make = drawing()
    assert {make.axis(3) for _ in range(200)} == {-3, -2, -1, 0, 1, 2}
    assert make.axis(0) == 0
    found = [make.axes(3) for _ in range(400)]
    assert {len(axes) for axes in found} == {0, 1, 2, 3}
    assert all(len({axis % 3 for axis in axes}) == len(axes) and all(-3 <= axis < 3 for axis in axes) for axes in found)
    assert {axis for axes in found for axis in axes} == {-3, -2, -1, 0, 1, 2}
    assert {len(make.axes(3, 1)) for _ in range(50)} == {0, 1}


def test_shapes_that_broadcast() -> None:
    make = drawing()
    found = {make.broadcast((2, 3, 4)) for _ in range(400)}
    assert all(np.broadcast_shapes(shape, (2, 3, 4)) == (2, 3, 4) for shape in found)
    assert {len(shape) for shape in found} == {0, 1, 2, 3}
    assert {shape[-1] for shape in found if shape} == {1, 4}


def test_texts_of_attributes() -> None:
    assert [text_of(value) for value in (True, 2, [1, -2], (False, 0.5), "a")] == [
        "true",
        "2",
        "1,-2",
        "false,0.5",
        "a",
    ]
    make = drawing()
    make.has(a__b=[1], c=None)
    assert make.attributes == {"a.b": "1", "c": None}


def test_a_declared_shape_allows_what_is_fed() -> None:
    styles = set()
    for seed in range(300):
        shape = (0, 3, 17)
        text = _declared(random.Random(seed), shape)
        assert PartialShape.parse(text).contains(shape)
        styles.add("..." if text == "..." else "?" if "?" in text else ".." if ".." in text else "")
    assert styles == {"", "?", "..", "..."}


# --------------------------------------------------------------------------- values


@pytest.mark.parametrize("kind", [kind for kind in ELEMENT_TYPES if not kind.is_dynamic], ids=str)
def test_values_are_of_their_type(kind: ElementType) -> None:
    rng = np.random.default_rng(1)
    arrays = [random_array(rng, kind, (4, 30)) for _ in range(60)]
    assert {array.dtype for array in arrays} == {kind.to_dtype()}
    assert {array.shape for array in arrays} == {(4, 30)}
    if kind.kind == "string":
        assert {text for array in arrays for text in array.ravel()} == {"", "a", "text", "öä", "x" * 20}
        return
    numbers = np.concatenate([array.astype(np.float64) for array in arrays])
    if kind.name == "f8e8m0":  # has no negative numbers
        return
    if kind.is_real and kind.name != "nf4":
        usual = [
            np.isfinite(array.astype(np.float64)).all() and (np.abs(array.astype(np.float64)) < 8).all()
            for array in arrays
        ]
        assert 0.7 < np.mean(usual) <= 1
        return
    low, high = (0, 1) if kind.kind == "boolean" else value_range(kind)
    assert low <= numbers.min() <= numbers.max() <= high
    if kind.bits <= 8:
        assert (numbers.min() < -3 or low >= -8, numbers.max() > high * 0.9) == (True, True)
        assert len(np.unique(numbers)) > min((high - low + 1) * 0.9, 100)
        assert np.median(numbers) <= max(high / 2, 5)


def test_values_of_a_domain_keep_to_it() -> None:
    rng = np.random.default_rng(0)
    for domain, least, greatest in (
        (Domain(2, 5), 2, 5),
        (Domain(3), 3, 12),
        (Domain(high=4), 0, 4),
        (Domain(7, 6), 7, 7),
    ):
        found = _within(rng, domain, (400,))
        assert (found.min(), found.max(), len(np.unique(found))) == (least, greatest, greatest - least + 1)


def test_numbers_that_are_changed() -> None:
    values = np.linspace(-3, 3, 1000)
    ties = _with_ties(values)
    assert np.abs(ties - values).max() <= 0.25
    assert (ties * 2 % 1 == 0).all()
    rng = np.random.default_rng(0)
    shares = [np.mean(_with_extremes(values, rng) != values) for _ in range(50)]
    assert (min(shares) < 0.2, max(shares) > 0.8) == (True, True)


def test_cases_have_constants_and_parameters() -> None:
    cases = [make_case(NAMES.index("Add-1") + number * len(NAMES)) for number in range(200)]
    constants = sum(len(case.constants) for case in cases)
    assert sum(len(case.feeds) for case in cases) + constants == 400
    assert 80 < constants < 200


# --------------------------------------------------------------------------- words


def test_inputs_in_words() -> None:
    kinds, counts, values = set(), Counter[int](), set()
    for seed in range(200):
        make = drawing(seed)
        make.set(N=2, C=3)
        make.take("f32|i32 N C | C N, ?i64 2 = 0..9, u8 C = 4, f16 any2")
        first, *others = make.inputs
        assert first.shape in ((2, 3), (3, 2))
        kinds.add((first.element_type, first.shape))
        counts[len(others)] += 1
        if others:
            assert [given.element_type for given in others] == ["i64", "u8", "f16"]
            assert (others[0].values.shape, others[1].values.tolist()) == ((2,), 4)  # type: ignore[union-attr]
            values.update(others[0].values.tolist())
            assert 2 <= len(others[2].shape) <= 4
            assert (others[0].is_constant in (True, None), others[2].is_constant) == (True, None)
    assert kinds == {(kind, shape) for kind in ("f32", "i32") for shape in ((2, 3), (3, 2))}
    assert {*counts} == {0, 3}
    assert 70 < counts[0] < 130
    assert values == {*range(10)}


def test_special_values_of_inputs() -> None:
    make = drawing()
    make.take("f32 3 5, i64 1 = axis, i64 2 = axes, f32 2 4 = image, f32 6 5 = rois")
    axis, axes, image, rois = (given.values for given in make.inputs[1:])
    assert -2 <= int(axis) < 2
    assert len({x % 2 for x in axes.tolist()}) == len(axes)  # type: ignore[union-attr]
    assert image.tolist() == [[32, 32, 1, 1]] * 2  # type: ignore[union-attr]
    assert (rois[:, 0].tolist(), rois.dtype) == ([0] * 6, np.float32)
    left, top, right, bottom = rois[:, 1:].T
    assert (left <= right).all()
    assert (top <= bottom).all()
    assert rois.max() <= 9


def test_settings_in_words() -> None:
    found = set()
    for seed in range(100):
        make = drawing(seed)
        make.take("f32 3 5")
        make.settle("N=1|2 group=N axis=axis eps=|0.1")
        found.add((make.sizes["N"], make.attributes["eps"]))
        assert make.attributes["group"] == str(make.sizes["N"])
        assert -2 <= int(make.attributes["axis"]) < 2
    assert found == {(size, eps) for size in (1, 2) for eps in (None, "0.1")}


def test_types_are_one_throughout_an_operation() -> None:
    make = drawing()
    assert len({make.number for _ in range(20)}) == len({make.index for _ in range(20)}) == 1
    kinds = {
        name: {getattr(drawing(seed), name) for seed in range(300)} for name in ("half", "narrow", "real", "index")
    }
    assert kinds["half"] < kinds["narrow"] < kinds["real"] == {"f32", "f16", "bf16", "f64"}
    assert kinds["half"] == {"f32", "f16"}
    assert kinds["index"] == {"i32", "i64"}
    assert "boolean" in {drawing(seed, "BitwiseAnd").bits for seed in range(300)}
    assert "boolean" not in {drawing(seed, "BitwiseLeftShift").bits for seed in range(300)}
