"""Random inputs for a model, ready to be fed or saved."""

from __future__ import annotations

import os

from ovir.core.arrays import Array
from ovir.graph.names import distinct_names
from ovir.model import Model


def random_inputs(model: Model | str | os.PathLike[str], seed: int = 0) -> dict[str, Array]:
    """Return a random array for each input of a model, by the input's name.

    They are the ones that ``ovir run`` makes: the same seed gives the same values, inputs that serve as indices stay in
    range, and sizes are chosen for what is dynamic. An array has the dtype of its input's element type. The model
    keeps its shapes.

    Raises ModelError if no sizes are found that the model accepts, and what ``read_model`` raises for a file.
    """
    from ovir.analysis import random_inputs as generator  # so that the public names alone do not load it

    if not isinstance(model, Model):
        from ovir.model import read_model  # a convenience only

        model = read_model(model)
    if not all(port.shape.is_static for port in model.inputs):
        model = model.clone()
        generator.fix_shapes(model)
    made = generator.random_inputs(model, seed)
    return dict(zip(distinct_names(model.inputs), (item.array for item in made), strict=True))
