"""A model in memory."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, SupportsIndex, overload

from ovir.core.dimensions import DimensionLike
from ovir.core.garbage import without_garbage_collection
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import USAGE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError
from ovir.diagnostics.text import plural
from ovir.graph.checked_edits import CheckedEdits
from ovir.graph.connections import Edge, set_scopes
from ovir.graph.flat import FlatLayer, FlatPort, flatten, restore
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.graph.provided import Provided, builder
from ovir.graph.rt_info import NO_RT_INFO, RtInfo
from ovir.graph.weights import Weights

ShapeLike = PartialShape | Sequence[DimensionLike] | str


class Inference(Protocol):
    """The functions that ``ovir.inference`` provides."""

    def infer(self, model: Model) -> list[Diagnostic]:
        """Infer a model, and return warnings and infos."""

    def reshape(self, model: Model, shapes: Mapping[Any, ShapeLike]) -> list[Diagnostic]:
        """Give inputs other shapes, infer the model, and return warnings and infos."""

    def find_weights(self, model: Model) -> list[Weights]:
        """Return the weights of a model."""


inference = Provided[Inference]("ovir.inference.models")


class Model(CheckedEdits):
    """A named graph of layers, together with the diagnostics of reading and inferring it. ``read_model`` makes it.

    ``Model(results, parameters, name)`` makes it from layers that the functions of an opset have created, and infers
    it. ``results`` are Results, or layers and output ports that get one each; ``parameters`` are all Parameters that
    they depend on, in the order of the inputs. ``sinks`` are the Assigns, which may also come second, as in
    ``Model(results, sinks, parameters, name)``. Raises InputError for other arguments and for layers of another model.

    The graph is acyclic. There are two kinds of edits. ``extract``, ``rename``, ``add_outputs``, ``set_constant``,
    ``replace``, ``insert_after``, ``insert_before``, ``remove``, ``fold_constants``, ``decompress``, ``prune`` and
    ``strip_rt_info`` leave an inferred model, or raise an OvirError and change nothing. The primitive edits
    ``connect``, ``disconnect``, ``move_readers``, ``add_layer``, ``insert_layer_after``, ``remove_layer``,
    ``replace_layer``, ``rename_layers`` and ``rename_tensors`` do not infer: call ``infer_shapes`` after them, or use
    ``editing``. Edits raise InputError for a layer, tensor or port that the model does not have and for a name that is
    taken, and ModelError if the model that they leave would be wrong.
    """

    @overload
    def __init__(
        self,
        results: Sequence[LayerOrPort] | LayerOrPort,
        parameters: Sequence[LayerOrPort],
        name: str = "",
        *,
        sinks: Sequence[LayerOrPort] = (),
    ) -> None: ...

    @overload
    def __init__(
        self,
        results: Sequence[LayerOrPort] | LayerOrPort,
        sinks: Sequence[LayerOrPort],
        parameters: Sequence[LayerOrPort],
        name: str = "",
    ) -> None: ...

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        layers, name = builder().assemble(arguments, keywords)
        self._set_up(layers, name)
        self._infer_assembled()

    @classmethod
    def of_layers(
        cls,
        layers: Iterable[Layer],
        *,
        name: str = "",
        version: int = 11,
        path: str | None = None,
        rt_info: RtInfo = NO_RT_INFO,
        has_gaps: bool = False,
    ) -> Self:
        """Return a model of exactly these layers, with the connections that they have; it is not inferred.

        The layers have distinct ids and are made by hand or read from a file. Those that the functions of an opset make
        are not connected in both directions: ``Model(results, parameters)`` takes them. Use ``connect`` for what is not
        connected yet, and then ``infer_shapes``.

        ``version`` is the version of the file format. ``has_gaps`` means that some layers or edges are missing, so that
        no layer is known to be dead. Raises ModelError for a cycle, and InputError for layers that share a body.
        """
        model = cls.__new__(cls)
        model._set_up(layers, name, version, path, rt_info, has_gaps)
        return model

    def _set_up(
        self,
        layers: Iterable[Layer],
        name: str,
        version: int = 11,
        path: str | None = None,
        rt_info: RtInfo = NO_RT_INFO,
        has_gaps: bool = False,
    ) -> None:
        super().__init__(layers, name=name, path=path, has_gaps=has_gaps)
        self.version = version
        self.rt_info = rt_info
        self.read_diagnostics: list[Diagnostic] = []
        """Warnings and infos of reading."""
        self.inference_diagnostics: list[Diagnostic] = []
        """Warnings and infos of the last inference."""
        self.revision = 0
        """The number of inferences so far, by which results of an earlier one are recognized as out of date."""
        self.open_edits: Any = None
        """The block of ``editing`` that has not ended, if there is one."""

    def _infer_assembled(self) -> None:
        """Infer a model just made; if that fails, its layers are free again."""
        for layer in self._file_order:
            set_scopes(layer)
        try:
            self.infer_shapes()
        except ModelError:
            builder().release(self._file_order)
            raise

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return the warnings and infos of reading and of the last inference."""
        return [*self.read_diagnostics, *self.inference_diagnostics]

    def infer_shapes(self) -> None:
        """Infer the type and shape of every port, as ``read_model`` has done; call this after edits.

        Raises ModelError if inference fails.
        """
        self.require_depth()
        self.prepare_change()
        with without_garbage_collection():
            self.inference_diagnostics = inference().infer(self)

    def reshape(self, shapes: Mapping[Any, ShapeLike] | ShapeLike) -> None:
        """Give inputs other shapes and infer again.

        ``shapes`` maps the name, position or Port of an input to its shape; a model with one input also takes a single
        shape. A shape is a PartialShape, a list such as ``[1, -1, "2..5"]`` or a text such as ``"1,?,2..5"``.

        Raises InputError for an input that the model does not have and for a text that is no shape, and ModelError if a
        layer refuses the shapes. The model has not changed then.
        """
        wanted = shapes if isinstance(shapes, Mapping) else {0: shapes}
        self.require_depth()
        self.prepare_change()
        with without_garbage_collection():
            self.inference_diagnostics = inference().reshape(self, wanted)

    def input_index(self, key: str | int | Port) -> int:
        """Return the position of an input that is given by position, tensor name, layer name or Port.

        Raises InputError if there is none.
        """
        if isinstance(key, Port):
            if key in self.inputs:
                return self.inputs.index(key)
        elif not isinstance(key, (str, bool)) and isinstance(key, SupportsIndex):  # the latter takes 8 us
            if 0 <= (index := key.__index__()) < len(self.inputs):
                return index
        else:
            for match in (lambda p: key in p.names, lambda p: key == p.layer.name):
                for index, port in enumerate(self.inputs):
                    if match(port):
                        return index
        known = ", ".join(f"{i} '{port.any_name}'" for i, port in enumerate(self.inputs)) or "none"
        message = f"the model has no input {key!r}; its inputs are {known}"
        raise InputError(diagnose(USAGE, message, Place(self.path)))

    def weights(self) -> list[Weights]:
        """Return the weights of all products, convolutions and gathers, those in bodies included.

        Each entry names the layer, its input port, the shape, the element type in the file and what compresses it. Its
        ``array`` decompresses it anew each time. A constant that several layers read is listed for each of them.
        """
        return inference().find_weights(self)

    # ----- copies

    def clone(self) -> Self:
        """Return an independent copy of this model; only the data of weights is shared."""
        with without_garbage_collection():
            return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        layers = independent(self._file_order, memo)
        clone = type(self).__new__(type(self))
        clone._restore({**self._own_state(), "layers": layers})
        memo[id(self)] = clone
        return clone

    def __getstate__(self) -> dict[str, Any]:
        self.require_depth()
        with without_garbage_collection():
            layers = [
                layer._replace(
                    rt_info=origin.rt_info,
                    inputs=[_without_value(port) for port in layer.inputs],
                    outputs=[_without_value(port) for port in layer.outputs],
                )
                for layer, origin in zip(flatten(self._file_order), self._file_order, strict=True)
            ]
        return {**self._own_state(), "layers": layers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._restore(state)
        if self.revision:
            try:
                self.infer_shapes()  # pickles do not contain known values
            except ModelError:
                return  # it was pickled between two edits: keep the types of the pickle

    def _own_state(self) -> dict[str, Any]:
        return {
            "settings": {
                "name": self.name,
                "version": self.version,
                "path": self.path,
                "rt_info": self.rt_info,
                "has_gaps": self.has_gaps,
            },
            "diagnostics": (list(self.read_diagnostics), list(self.inference_diagnostics)),
            "revision": self.revision,
            "needs_inference": self.needs_inference,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        layers: list[FlatLayer] = state["layers"]
        with without_garbage_collection():
            self._set_up(restore(layers), **state["settings"])
        self.read_diagnostics, self.inference_diagnostics = state["diagnostics"]
        self.revision = state["revision"]
        self.needs_inference = state["needs_inference"]

    def __repr__(self) -> str:
        counts = {"layer": len(self._file_order), "input": len(self.inputs), "output": len(self.outputs)}
        return f"<Model {self.name!r}: {', '.join(plural(count, noun) for noun, count in counts.items())}>"


def independent(layers: Sequence[Layer], memo: dict[int, Any]) -> list[FlatLayer]:
    """Return copies of layers, with their bodies, that share only the data of weights with them."""
    return [
        layer._replace(
            attributes=copy.deepcopy(layer.attributes, memo),
            operator=copy.deepcopy(layer.operator, memo),
            bodies={key: copy.deepcopy(body, memo) for key, body in layer.bodies.items()},
        )
        for layer in flatten(layers)
    ]


def _without_value(port: FlatPort) -> FlatPort:
    """Return the port without its known value, which may refer to large data."""
    if port.inferred is None or port.inferred.value is None:
        return port
    return port._replace(inferred=TensorType(port.inferred.element_type, port.inferred.shape))


__all__ = ["Edge", "Model", "ShapeLike"]
