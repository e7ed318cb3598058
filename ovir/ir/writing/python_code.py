"""Saves models as Python code that builds them."""

from __future__ import annotations

import os

import numpy as np

from ovir.build.code.program import Program
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.graph.names import make_names_unique, repeated_names
from ovir.ir.writing.pair import CODE, target_paths, writing_pair
from ovir.ir.writing.save import upgraded


def to_python(model: LayerGraph, path: str | os.PathLike[str]) -> None:
    """Write Python code that builds the model; running it leaves the Model in ``model``.

    Constants of many elements are written to the .npz of the same name. Names of layers and tensors, bodies and
    variables are kept; layers that no result depends on are left out. A model of version 10 is upgraded, as by
    ``save_model``. The files replace older ones only when both are complete. A tensor name that an earlier tensor has
    gets a number.

    Raises WriteError if the files cannot be written, and ModelError if the model is wrong.
    """
    target_paths(path, CODE)
    program = program_of(model)
    with writing_pair(path, CODE, has_data=bool(program.arrays)) as (text, *data):
        text.write(program.text.encode())
        if data:
            np.savez(data[0], **program.arrays)  # type: ignore[arg-type]  # mypy takes them for allow_pickle


def program_of(model: LayerGraph) -> Program:
    """Return the code for a model; one of version 10 is upgraded, as the code has no rules of versions.

    Tensor names that an earlier tensor has get a number, because ``Model`` takes a name for one tensor only.
    """
    model = upgraded(model)
    if any(next(repeated_names(_alive(graph)), None) for graph in model.graphs()):
        model = model.clone()
        for graph in model.graphs():
            make_names_unique(_alive(graph))
    return Program(model)


def _alive(graph: LayerGraph) -> list[Layer]:
    return [layer for layer in graph.layers if not layer.is_dead or layer.type == "Parameter"]
