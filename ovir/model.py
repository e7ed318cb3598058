"""The model that users hold: a graph of layers with the methods that read, infer, build and edit it.

Packages below this module work on ``LayerGraph``. They make graphs of the class of a given graph, and without one,
as in the reader, of a given class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Literal, Self, get_overloads, overload

from ovir.diagnostics.errors import InputError, ModelError, require_flags
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, LayerOrPort, Port, set_arithmetic

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from ovir.core.element_types import ElementType
    from ovir.core.shapes import ShapeLike
    from ovir.diagnostics.diagnostic import Diagnostic
    from ovir.editing.effect import Effect
    from ovir.editing.keys import InputKey, InputKeys, LayerKey, TensorKey, TensorKeys
    from ovir.editing.proof import ProvenEdit
    from ovir.inference.layer_weights import Weights
    from ovir.ir.source import Source


class Model(LayerGraph):
    """A named graph of layers, together with the diagnostics of reading and inferring it. ``read_model`` makes it.

    ``Model(results, parameters, name)`` makes it from layers that the functions of an opset have created, and infers
    it. ``results`` are Results, or layers and output ports that get one each; ``parameters`` are all Parameters that
    they depend on, in the order of the inputs. ``sinks`` are the Assigns, which may also come second, as in
    ``Model(results, sinks, parameters, name)``. Raises InputError for other arguments and for layers of another model.

    The graph is acyclic. There are two kinds of edits. ``extract``, ``rename``, ``add_outputs``, ``set_constant``,
    ``replace``, ``insert_after``, ``insert_before``, ``remove``, ``set_batch``, ``states_to_inputs``,
    ``inputs_to_states``, ``fix_input``, ``fold_constants``, ``simplify``, ``decompress``, ``prune``, ``preprocess`` and
    ``strip_rt_info`` leave an inferred model, or raise an OvirError and change nothing. The primitive edits
    ``connect``, ``disconnect``, ``move_readers``, ``add_layer``, ``insert_layer_after``, ``remove_layer``,
    ``replace_layer``, ``rename_layers`` and ``rename_tensors`` do not infer: call ``infer_shapes`` after them, or use
    ``editing``. Edits raise InputError for a layer, tensor or port that the model does not have and for a name that is
    taken, and ModelError if the model that they leave would be wrong.

    A layer is given by its name, key or id, or as a Layer. A tensor is given by its name, by the name of its layer, as
    ``(layer, position of the output)``, or as a Port; where a tensor and a layer have the same name, it means the
    tensor. Names such as ``loop/body/name`` refer to bodies; an edit of a body infers the model around it.

    An edit of the first kind copies the connections of the model and infers all of it. Put many edits into one block of
    ``editing``.
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
        from ovir.building.assembly import assembled, infer_assembled

        layers, name = assembled(get_overloads(Model.__init__), (self, *arguments), keywords)
        super().__init__(layers, name=name)
        infer_assembled(self)

    update_wrapper(__init__, get_overloads(__init__)[0])  # whose signature help and editors then show

    # ----- inference

    def infer_shapes(self) -> None:
        """Infer the type and shape of every port, as ``read_model`` has done; call this after edits.

        Raises ModelError if inference fails.
        """
        from ovir.inference.models import infer_shapes

        infer_shapes(self)

    @overload
    def reshape(self, shapes: Mapping[Any, ShapeLike] | ShapeLike) -> None: ...
    @overload
    def reshape(
        self,
        shapes: Mapping[Any, ShapeLike] | ShapeLike,
        *,
        adapt: Literal[True],
        verify: bool = True,
        like: Model | None = None,
    ) -> ProvenEdit: ...
    def reshape(
        self,
        shapes: Mapping[Any, ShapeLike] | ShapeLike,
        *,
        adapt: bool = False,
        verify: bool = True,
        like: Model | None = None,
    ) -> ProvenEdit | None:
        """Give inputs other shapes and infer again.

        ``shapes`` maps the name, position or Port of an input to its shape; a model with one input also takes a single
        shape. A shape is a PartialShape, a list such as ``[1, -1, "2..5"]`` or a text such as ``"1,?,2..5"``.

        With ``adapt``, constants that hold a size of the present shapes follow the inputs, and the changes are returned
        with a verdict, which says what was shown: the results in the present shapes are the same, the model runs in
        other shapes. ``like`` is an export of the same model for other shapes, in which its results must be the same.
        ``verify=False`` runs nothing.

        Raises InputError for an input that the model does not have or a text that is not a shape, and ModelError if
        a layer refuses the shapes, or has data, such as a learned table, for the present ones only. The model has not
        changed then.
        """
        if adapt:
            from ovir.editing.adaptation import adapt as adapt_model

            return adapt_model(self, shapes, verify, like)
        from ovir.inference.models import reshape

        reshape(self, shapes)
        return None

    def weights(self) -> list[Weights]:
        """Return the weights of all products, convolutions and gathers, those in bodies included.

        Each entry names the layer, its input port, the shape, the element type in the file and what compresses it. Its
        ``array`` decompresses it anew each time. A constant that several layers read is listed for each of them.
        """
        from ovir.inference.layer_weights import weights_of

        return weights_of(self)

    def _repr_html_(self) -> str:
        from ovir.graph.drawing import html_of_model

        return html_of_model(self)

    # ----- edits, each of which leaves an inferred model or changes nothing

    def editing(self) -> AbstractContextManager[Effect]:
        """Combine edits to one: the model is inferred at the end of the ``with`` block.

        If the block raises, or if the model cannot be inferred at its end, nothing has changed. Primitive edits
        can be part of it. ``with model.editing() as effect`` counts what the edits change: after the block,
        ``print(effect)`` shows the layers that they have added, removed and changed, and the constants and their
        bytes before and after, as ``ovir edit`` does.
        """
        from ovir.editing.effect import measured

        return measured(self)

    def extract(self, inputs: TensorKeys | None = None, outputs: TensorKeys | None = None) -> Self:
        """Return a new model that computes ``outputs`` from ``inputs``; this model does not change.

        Both are tensors in the order that they have in the new model. An input that no Parameter has becomes a new
        Parameter of the inferred type. Without ``inputs``, the part has those Parameters of this model that it needs;
        without ``outputs``, it has all Results. The layers in between keep names, ids and bodies, and share the data of
        their weights. A ReadValue keeps its Assign if the part can compute what that assigns. Tensors of a body give a
        part of that body.

        Raises InputError if an output depends on a Parameter that is not among the inputs.
        """
        from ovir.editing.extraction import extract

        return extract(self, inputs, outputs)

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename layers and tensors, inputs and outputs included; ``names`` maps present to new names.

        A name that both a layer and a tensor have is changed for both. Names can be exchanged. Raises InputError for a
        name that another layer or tensor has.
        """
        from ovir.editing.model_edits import rename

        rename(self, names)

    def add_outputs(self, outputs: TensorKeys) -> list[Port]:
        """Make tensors outputs of the model, and return the ports of ``model.outputs`` that belong to them.

        A tensor that already is an output keeps its Result. A tensor without a name gets the name of its layer.
        """
        from ovir.editing.model_edits import add_outputs

        return add_outputs(self, outputs)

    def remove_output(self, key: str | int | Port) -> list[Layer]:
        """Remove an output, and return the layers that only it needed, which are removed as well.

        Layers that were dead before remain; see ``prune``. The only output of a model cannot be removed.
        """
        from ovir.editing.model_edits import remove_output

        return remove_output(self, key)

    def add_nms(
        self,
        boxes: TensorKey,
        scores: TensorKey,
        *,
        iou: float = 0.5,
        score: float = 0.0,
        most: int = 300,
        form: str = "corners",
    ) -> list[Port]:
        """Add a NonMaxSuppression of opset 9 for decoded boxes and their scores, and return its three outputs.

        They are selected_indices i64[M,3] (image, class, box), selected_scores f32[M,3] (image, class, score) and the
        number M of selected boxes. The outputs that the model has stay, so that the indices pick the boxes.

        Args:
            boxes: The tensor of boxes, [N,4] or [4,N], with or without a batch before.
            scores: The tensor of scores, [classes,N] or [N,classes], or [N] for a single class, with the batch of the
                boxes.
            iou: Of two boxes of a class whose intersection over union is above this, the better one stays.
            score: Boxes with a score of at most this are dropped.
            most: The largest number of boxes of each class and image.
            form: ``corners`` for the coordinates of two opposite corners, ``centers`` for center, width and height.

        Raises InputError for tensors whose shapes do not say which axis is which.
        """
        from ovir.editing.suppression import add_nms

        return add_nms(self, boxes, scores, iou=iou, score=score, most=most, form=form)

    def set_constant(self, layer: LayerKey, array: ArrayLike) -> Layer:
        """Give a Const other data, and return it; the array decides on element type and shape.

        Numbers and lists of numbers take the element type that the constant has, and so do arrays of uint8 for u1, u3,
        u6 and nf4, which are held in such arrays.

        For a layer that is computed from constants alone, such as the last one of a decompression, the array takes the
        place of its output: the layer becomes a Const, and layers that only fed it are removed. To change the stored
        numbers of compressed weights instead, name their Const.
        """
        from ovir.editing.constant_edits import set_constant

        return set_constant(self, layer, array)

    def replace(self, layer: LayerKey, new: Layer) -> Layer:
        """Replace a layer by ``new``, which belongs to no model, and return ``new``.

        ``new`` may be made by the functions of an opset: ``model.replace("act", ops.gelu(tensor, "tanh"))``. It brings
        in the new layers that it depends on. Inputs that are not connected, or that read a new Parameter, read what
        the inputs of the old layer read. Outputs without names get the names of the old ones. The layers that only fed
        the old one remain; see ``prune``. An input of the model cannot be replaced by another Parameter, nor an output
        by a layer that is not a Result.
        """
        from ovir.editing.layer_edits import replace

        return replace(self, layer, new)

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
        from ovir.editing.layer_edits import insert_after

        return insert_after(self, port, layer, others, readers)

    def insert_before(self, port: InputKey, layer: Layer, others: TensorKeys = ()) -> Layer:
        """Insert a layer between one input and its source, and return the layer; see ``insert_after``.

        The input is given as a port or as ``(layer, position of the input)``; a layer stands for its only input.
        """
        from ovir.editing.layer_edits import insert_before

        return insert_before(self, port, layer, others)

    def remove(self, layer: LayerKey) -> None:
        """Remove a layer. If anything reads it, that reads the layer's first input instead.

        The names of an output of the model go with that output. The only output of a model cannot be removed.
        """
        from ovir.editing.layer_edits import remove

        remove(self, layer)

    def set_batch(self, batch: int | str | Mapping[Any, int | str], *, verify: bool = True) -> ProvenEdit:
        """Give the model another number of items in a batch, -1 for any, and return the changes and the proof.

        Constants that hold the old number, such as targets of Reshape and initial states, follow the inputs then; in
        bodies, too. ``batch`` may be a mapping from inputs, if only these have items. The layout of an input tells the
        axis; without one it is the first axis, or the first of the size that most inputs have there. The result is run
        on random inputs: one call with several items must equal calls of the present model with the same items.
        ``verify=False`` leaves this out.

        Raises ModelError, which names a layer, if the model mixes its items, as a normalization over the batch does,
        and changes nothing then.
        """
        from ovir.editing.batch import set_batch

        return set_batch(self, batch, verify)

    def states_to_inputs(self, *, verify: bool = True) -> ProvenEdit:
        """Make the states of the model inputs and outputs, and return the changes and the proof.

        Each ReadValue becomes an input, and its Assign an output, after the others and in the order of their names. A
        variable ``past_key_values.0.keypresent.0.key`` gives the names ``past_key_values.0.key`` and ``present.0.key``,
        as does one of ``inputs_to_states``; any other gives its id, and its id with ``/next`` after it. The export to
        ONNX gives the same. ``notes`` of the result say what to feed in the first call. Both models are run for five
        calls in a row, unless ``verify`` is False.
        """
        from ovir.editing.states import states_to_inputs

        return states_to_inputs(self, verify)

    def inputs_to_states(self, pairs: Mapping[str, str] | None = None, *, verify: bool = True) -> ProvenEdit:
        """Make inputs, and the outputs with their next values, states; return the changes and the proof.

        Args:
            pairs: The name of the output for the name of each input; by default the usual pairs, such as
                ``past_key_values.0.key`` and ``present.0.key``, ``past`` and ``present``, or ``x`` and ``x/next``.
            verify: Whether both models are run for five calls in a row.

        The states begin with zeros, as few as the input allows, and with as many items as another input has.
        """
        from ovir.editing.states import inputs_to_states

        return inputs_to_states(self, pairs, verify)

    def fix_input(self, key: str | int | Port, value: ArrayLike, *, verify: bool = True) -> ProvenEdit:
        """Make a constant of an input, which is no longer an input, and return the changes and the proof.

        The value is converted as in a run, and its shape becomes that of the tensor. ``fold_constants`` then computes
        what follows from it. With ``verify``, the result must agree with the present model on random inputs.
        """
        from ovir.editing.constant_edits import fix_input

        return fix_input(self, key, value, verify)

    def fold_constants(self, *, decompress: bool = False, verify: bool = True) -> ProvenEdit:
        """Replace values that are known before any run by constants; return these, with the changes and the proof.

        The values are the same as in runs, which leave out what takes too much memory or time. Weights stay compressed
        unless ``decompress`` is True. Shapes that follow from the present shapes of the inputs become constants too:
        reshape the model before. An If whose condition is known is replaced by its branch, a Loop or TensorIterator
        that runs once by its body, one that never runs by its initial values, and a ReadValue that nothing assigns by
        its initial value. Dead layers are removed. With ``verify``, the result must agree with the present model on
        random inputs.
        """
        from ovir.editing.simplification import fold

        return fold(self, decompress, verify)

    def simplify(self, *, verify: bool = True) -> ProvenEdit:
        """Fold constants, leave out layers that have no effect, and return the changes and the proof.

        These are layers whose output equals their input in every run, such as a Pad by zeros; Transposes, reshapes and
        lossless Converts that undo others; reshapes and Converts that another one follows; and layers that compute
        what another one computes from the same inputs. Inputs, outputs and states remain, with the names that they
        show; other tensors that become one have the names of both.
        """
        from ovir.editing.simplification import simplify

        return simplify(self, verify)

    def decompress(self) -> list[Layer]:
        """Replace compressed weights by constants of the decompressed numbers, and return these."""
        from ovir.editing.constant_edits import decompress

        return decompress(self)

    def lower(self, target: str | int) -> list[Layer]:
        """Replace operation versions that an OpenVINO release does not know by older ones that compute the same.

        ``target`` is a release such as ``"2022.3"``, or the number of an opset, for the first release that knows it.
        Returns the layers that have taken the names and the tensor names of those replaced; further layers that they
        need are called ``name/Part``. The runtime information ``ovir.lowered_from`` of these layers says what they
        were. A model that needs nothing does not change. A release before 2022.1 also needs a file of version 10:
        ``save_model(..., version=10)``.

        Raises ExportError, with a diagnostic for each layer that cannot be replaced, and changes nothing then.
        """
        from ovir.editing.lowering import lower

        return lower(self, target)

    def prune(self) -> list[Layer]:
        """Remove the dead layers of the model and its bodies, and return them.

        Parameters remain, as they are part of the model's interface: ``remove`` removes one that nothing reads. A
        ReadValue remains as long as there is an Assign of its variable.
        """
        from ovir.editing.model_edits import prune

        return prune(self)

    def preprocess(
        self,
        key: str | int | Port = 0,
        *,
        element_type: str | ElementType | None = None,
        layout: str | None = None,
        model_layout: str | None = None,
        resize: str | None = None,
        size: Sequence[int | str] | None = None,
        reverse_channels: bool = False,
        mean: float | Sequence[float] | None = None,
        scale: float | Sequence[float] | None = None,
    ) -> Port:
        """Let the model prepare an input itself, and return the input, whose type and shape are then others.

        A fed array is converted, transposed and resized, its channels are reversed, the mean is subtracted, and it is
        divided by the scale, in this order.

        Args:
            key: The input, by name or position.
            element_type: The type of fed arrays.
            layout: The layout of fed arrays, such as ``"NHWC"``.
            model_layout: The layout that the model takes: by default the one that its file records, or else NCHW for
                inputs of rank 4.
            resize: The mode of Interpolate that resizes images for the model: ``"linear"``, ``"nearest"``,
                ``"cubic"``, ``"bilinear_pillow"`` or ``"bicubic_pillow"``.
            size: A height and a width that images have before they are resized; by default any.
            reverse_channels: Whether the order of the channels is reversed.
            mean: One number, or one for each channel.
            scale: One number, or one for each channel.

        Raises InputError for arguments that do not fit the input.
        """
        from ovir.editing.preprocessing import Preprocessing, preprocess

        wanted = Preprocessing(element_type, layout, model_layout, resize, size, reverse_channels, mean, scale)
        return preprocess(self, key, wanted)

    def strip_rt_info(self) -> None:
        """Remove all runtime information of the model, its layers, ports and bodies.

        This includes entries that other programs act on, such as layouts and the marks of compressed weights.
        """
        from ovir.editing.model_edits import strip_rt_info

        strip_rt_info(self)

    # ----- pickles

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.revision:
            try:
                self.infer_shapes()  # pickles do not contain known values
            except ModelError:
                return  # it was pickled between two edits: keep the types of the pickle


def join(
    first: Model | str | os.PathLike[str],
    second: Model | str | os.PathLike[str],
    connections: Mapping[Any, Any],
) -> Model:
    """Return a model that runs ``first`` and feeds its outputs to ``second``; both remain as they are.

    ``connections`` maps tensors of the first model to inputs of the second: ``{"out": "in"}``; to a list, if a tensor
    feeds several inputs. Models may be given as paths. The other inputs and outputs of both models are those of the
    result, where an output of the first that feeds the second is no longer an output. Layers, tensors and variables of
    the second model whose names the first has get a number: ``name_2``.

    Raises InputError for tensors and inputs that do not exist or do not fit, and ModelError if the joined model is
    wrong.
    """
    from ovir.editing.joining import join_models

    first, second = opened(first), opened(second)
    return join_models(first, second, connections)


def opened(model: Model | Source) -> Model:
    """Return a model, which is read first if something else is given."""
    return model if isinstance(model, Model) else read_model(model)


def read_model(
    model: Source,
    weights: Any = None,
    *,
    shapes: Mapping[Any, ShapeLike] | ShapeLike | Callable[[Model], Mapping[Any, ShapeLike]] | None = None,
    legacy_io: bool = False,
) -> Model:
    """Read an IR file, infer the type and shape of every port, and return the Model.

    Args:
        model: The path of the .xml, its content (bytes, or a text that begins with ``<``), or an open file, which is
            read from its position on.
        weights: A path, bytes, another buffer, an array, a tensor of OpenVINO or an open file; by default the .bin
            next to the .xml.
        shapes: Other shapes of inputs than in the file, as ``Model.reshape`` takes them, or a function that returns
            them for the model before it is inferred. The shapes of the file need not fit then, and declared shapes are
            not compared.
        legacy_io: Whether a file of version 10 is read as OpenVINO reads it: f16 inputs become f32, other types of
            inputs and outputs f32 or i32.

    Raises ReadError if the file cannot be read as IR, and ModelError if the model is wrong. Both have all diagnostics.
    """
    from ovir.ir.read_and_infer import read_and_infer

    return read_and_infer(model, weights, Model, shapes=shapes, legacy_io=legacy_io)


def save_model(
    model: Model | str | os.PathLike[str],
    output_model: str | os.PathLike[str],
    compress_to_fp16: bool = False,
    *,
    compress_to_bf16: bool = False,
    version: int = 11,
) -> list[Diagnostic]:
    """Write a model as an .xml, of IR version 11 or 10, and the .bin next to it; return the warnings.

    A model that was edited is inferred first. A model of version 10 is upgraded: what OpenVINO does to the inputs and
    outputs of such a file becomes part of the model. The files replace older ones only when both are complete; they may
    be the files of the model itself. Equal models give equal files.

    Args:
        model: The model, or the path of an .xml.
        output_model: The path of the .xml.
        compress_to_fp16: Whether large constants of f32 are written as f16.
        compress_to_bf16: Whether they are written as bf16, which has fewer digits and the range of f32.
        version: The version of IR. Version 10 is for OpenVINO 2021.4 and older: all inputs need exact sizes. These
            releases fill the outputs of NonMaxSuppression with -1 up to the largest size, feed inputs of f16 as f32,
            and give outputs of i64, u64 and u32 as i32, all others as f32.

    Raises WriteError if the files cannot be written, and ModelError if the model is wrong.
    """
    from ovir.ir.writing.compression import BF16, F16
    from ovir.ir.writing.save import write_model

    require_flags(compress_to_fp16=compress_to_fp16, compress_to_bf16=compress_to_bf16)
    if compress_to_fp16 and compress_to_bf16:
        raise InputError.usage("compress_to_fp16 and compress_to_bf16 exclude each other")
    compress_to = F16 if compress_to_fp16 else BF16 if compress_to_bf16 else None
    return write_model(model, output_model, compress_to, Model, version)[1]


def _apply(type_name: str, *operands: Any) -> Layer:
    """Return a new layer that applies an operation to layers, ports, arrays or numbers."""
    from ovir.building.creation import apply

    return apply(type_name, *operands)


set_arithmetic(_apply)
