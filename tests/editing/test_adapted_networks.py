"""A network that was built for one size and adapted computes at other sizes what the network built for these does."""

from time import process_time

import pytest
from support.adaptable import ADAPTABLE, REFUSED, Make, averaged, built, expected, opened, require_equal, results
from support.edited import everything

import ovir

pytestmark = pytest.mark.slow

NETWORKS = pytest.mark.parametrize("make", ADAPTABLE, ids=lambda make: make.__name__)


@NETWORKS
def test_open_sizes(make: Make) -> None:
    old, *others = ADAPTABLE[make]
    model = built(make, old).clone()
    edit = model.reshape(opened(make, old, *others), adapt=True)
    assert edit.layers
    assert edit.verdict.startswith("proven")
    compiled = ovir.compile_model(model)
    for sizes in (old, *others):
        feeds, wanted = expected(make, sizes)
        require_equal(list(compiled(feeds).values()), wanted)


@NETWORKS
def test_numbers(make: Make) -> None:
    old, _, sizes = ADAPTABLE[make]
    model, other = built(make, old).clone(), built(make, sizes)
    edit = model.reshape(other.inputs[0].shape, adapt=True)
    assert edit.verdict.startswith("proven")
    assert [port.shape for port in model.outputs] == [port.shape for port in other.outputs]
    feeds, wanted = expected(make, sizes)
    require_equal(results(model, feeds), wanted)


@NETWORKS
def test_another_export_confirms(make: Make) -> None:
    old, other, third = ADAPTABLE[make]
    model = built(make, old).clone()
    edit = model.reshape(opened(make, old, other, third), adapt=True, like=built(make, other))
    assert edit.verdict.startswith("proven")
    feeds, wanted = expected(make, third)
    require_equal(results(model, feeds), wanted)


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
@pytest.mark.parametrize("is_open", [True, False])
def test_learned_sizes_are_refused(make: Make, is_open: bool) -> None:
    old, other, message = REFUSED[make]
    model = make(*old)
    before = everything(model)
    shape = opened(make, old, other) if is_open else make(*other).inputs[0].shape
    with pytest.raises(ovir.ModelError, match=message):
        model.reshape(shape, adapt=True)
    assert everything(model) == before


def test_another_export_shows_what_no_shape_shows() -> None:
    model = averaged(8)
    told = model.clone().reshape([1, -1, 8], adapt=True).notes
    assert told == ["sizes, or numbers that follow from one, may be what stays in divisor"]
    with pytest.raises(ovir.ModelError, match="'divisor'"):
        model.reshape([1, -1, 8], adapt=True, like=averaged(5))


@NETWORKS
def test_time(make: Make) -> None:
    """Ten checks and three runs, besides what a few layers take at least."""
    old, other, _ = ADAPTABLE[make]
    model = built(make, old).clone()
    start = process_time()
    model.clone().infer_shapes()
    results(model, list(ovir.random_inputs(model, 1).values()))
    middle = process_time()
    model.reshape(opened(make, old, other), adapt=True, verify=False)
    assert process_time() - middle < 10 * (middle - start) + 0.5
