"""The edits after which a model is inferred. What they do is in ``ovir.editing``, which works on models."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, Self

from ovir.graph.edits import EditableGraph
from ovir.graph.keys import InputKey, InputKeys, LayerKey, TensorKey, TensorKeys
from ovir.graph.layers import Layer, Port
from ovir.graph.provided import Provided

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class CheckedEdits(EditableGraph):
    """The edits of a model that leave it inferred, or raise an OvirError and change nothing.

    A layer is given by its name, key or id, or as a Layer. A tensor is given by its name, by the name of its layer, as
    ``(layer, position of the output)``, or as a Port; where a tensor and a layer have the same name, it means the
    tensor. Names such as ``loop/body/name`` refer to bodies; an edit of a body infers the model around it.

    Every edit copies the connections of the model and infers all of it. Put many edits into one block of ``editing``.
    """

    def editing(self) -> AbstractContextManager[None]:
        """Combine edits to one: the model is inferred at the end of the ``with`` block.

        If the block raises, or if the model cannot be inferred at its end, nothing has changed. Primitive edits of
        ``EditableGraph`` can be part of it.
        """
        return edits().editing(self)

    def extract(self, inputs: TensorKeys | None = None, outputs: TensorKeys | None = None) -> Self:
        """Return a new model that computes ``outputs`` from ``inputs``; this model does not change.

        Both are tensors in the order that they have in the new model. An input that no Parameter has becomes a new
        Parameter of the inferred type. Without ``inputs``, the part has those Parameters of this model that it needs;
        without ``outputs``, it has all Results. The layers in between keep names, ids and bodies, and share the data of
        their weights. A ReadValue keeps its Assign if the part can compute what that assigns. Tensors of a body give a
        part of that body.

        Raises InputError if an output depends on a Parameter that is not among the inputs.
        """
        part: Self = edits().extract(self, inputs, outputs)
        return part

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename layers and tensors, inputs and outputs included; ``names`` maps present to new names.

        A name that both a layer and a tensor have is changed for both. Names can be exchanged. Raises InputError for a
        name that another layer or tensor has.
        """
        edits().rename(self, names)

    def add_outputs(self, outputs: TensorKeys) -> list[Port]:
        """Make tensors outputs of the model, and return the ports of ``model.outputs`` that belong to them.

        A tensor that already is an output keeps its Result. A tensor without a name gets the name of its layer.
        """
        return edits().add_outputs(self, outputs)

    def set_constant(self, layer: LayerKey, array: ArrayLike) -> Layer:
        """Give a Const other data, and return it; the array decides on element type and shape.

        Numbers and lists of numbers take the element type that the constant has, and so do arrays of uint8 for u1, u3,
        u6 and nf4, which are held in such arrays.

        For a layer that is computed from constants alone, such as the last one of a decompression, the array takes the
        place of its output: the layer becomes a Const, and layers that only fed it are removed. To change the stored
        numbers of compressed weights instead, name their Const.
        """
        return edits().set_constant(self, layer, array)

    def replace(self, layer: LayerKey, new: Layer) -> Layer:
        """Replace a layer by ``new``, which belongs to no model, and return ``new``.

        ``new`` may be made by the functions of an opset: ``model.replace("act", ops.gelu(tensor, "tanh"))``. It brings
        in the new layers that it depends on. Inputs that are not connected, or that read a new Parameter, read what
        the inputs of the old layer read. Outputs without names get the names of the old ones. The layers that only fed
        the old one remain; see ``prune``. An input of the model cannot be replaced by another Parameter, nor an output
        by a layer that is no Result.
        """
        return edits().replace(self, layer, new)

    def insert_after(
        self, port: TensorKey, layer: Layer, others: TensorKeys = (), *, readers: InputKeys | None = None
    ) -> Layer:
        """Insert a layer between a tensor and its readers, or only ``readers``, and return the layer.

        The layer must belong to no model. Functions of an opset make one that reads the tensor itself:
        ``model.insert_after(tensor, ops.relu(tensor))``; it brings in the new layers that it depends on. If its inputs
        are not connected, the tensor feeds the first one, and ``others`` those after it. The readers then read its
        first output. The tensor keeps its names, but the names of an output of the model go with that output. An input
        that reads a new Parameter counts as not connected, unless the layer reads the tensor itself, too.

        ``readers`` are input ports, ``(layer, position of the input)``, or layers, which stand for all of their inputs
        that read the tensor.
        """
        return edits().insert_after(self, port, layer, others, readers)

    def insert_before(self, port: InputKey, layer: Layer, others: TensorKeys = ()) -> Layer:
        """Insert a layer between one input and its source, and return the layer; see ``insert_after``.

        The input is given as a port or as ``(layer, position of the input)``; a layer stands for its only input.
        """
        return edits().insert_before(self, port, layer, others)

    def remove(self, layer: LayerKey) -> None:
        """Remove a layer. If anything reads it, that reads the layer's first input instead.

        The names of an output of the model go with that output. The only output of a model cannot be removed.
        """
        edits().remove(self, layer)

    def fold_constants(self, *, decompress: bool = False) -> list[Layer]:
        """Replace what is known before any run by constants, and return these.

        The values are the same as in runs, which leave out what takes too much memory or time. Weights stay compressed
        unless ``decompress`` is True. Shapes that follow from the present shapes of the inputs become constants too:
        reshape the model before.
        """
        return edits().fold_constants(self, decompress)

    def decompress(self) -> list[Layer]:
        """Replace compressed weights by constants of the decompressed numbers, and return these."""
        return edits().decompress(self)

    def prune(self) -> list[Layer]:
        """Remove the dead layers of the model and its bodies, and return them.

        Parameters remain, as they are part of the model's interface: ``remove`` removes one that nothing reads. A
        ReadValue remains as long as there is an Assign of its variable.
        """
        return edits().prune(self)

    def strip_rt_info(self) -> None:
        """Remove all runtime information of the model, its layers, ports and bodies.

        This includes what other programs act on, such as layouts and the marks of compressed weights.
        """
        edits().strip_rt_info(self)


class Edits(Protocol):
    """The functions that ``ovir.editing`` provides: the methods of ``CheckedEdits``, which take the model first."""

    def editing(self, model: Any) -> AbstractContextManager[None]: ...

    def extract(self, model: Any, inputs: TensorKeys | None, outputs: TensorKeys | None) -> Any: ...

    def rename(self, model: Any, names: Mapping[str, str]) -> None: ...

    def add_outputs(self, model: Any, outputs: TensorKeys) -> list[Port]: ...

    def set_constant(self, model: Any, layer: LayerKey, array: ArrayLike) -> Layer: ...

    def replace(self, model: Any, layer: LayerKey, new: Layer) -> Layer: ...

    def insert_after(
        self, model: Any, port: TensorKey, layer: Layer, others: TensorKeys, readers: InputKeys | None
    ) -> Layer: ...

    def insert_before(self, model: Any, port: InputKey, layer: Layer, others: TensorKeys) -> Layer: ...

    def remove(self, model: Any, layer: LayerKey) -> None: ...

    def fold_constants(self, model: Any, decompress: bool) -> list[Layer]: ...

    def decompress(self, model: Any) -> list[Layer]: ...

    def prune(self, model: Any) -> list[Layer]: ...

    def strip_rt_info(self, model: Any) -> None: ...


edits = Provided[Edits]("ovir.editing.provider")
