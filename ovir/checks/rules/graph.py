"""Rules about layers, tensors, attributes and variables, and about valid models that could be better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ovir.checks.rule import Context, Found, rule
from ovir.core.element_types import f64
from ovir.diagnostics.codes import NO_RESULT, PINNED_SIZE, UNSPECIFIED, Code
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer, Port
from ovir.graph.names import repeated_names
from ovir.inference.pinned_sizes import pinned_sizes
from ovir.ir.layer_reader import misspelled_attributes, unknown_attributes
from ovir.ops.control_flow import IterationBase, TensorIterator, by_output


@rule(
    Code.info(212, "no result and no state depends on a layer; OpenVINO drops it", fixable="--fix"),
    needs_whole_graph=True,
)
def dead_layer(context: Context) -> Iterator[Found]:
    """Info. OpenVINO drops such layers when it compiles. If several are connected, only the last is reported. The cause
    is a forgotten edge, or a leftover of an edit.
        <layer id="2" name="exp" type="Exp" version="opset1">   <!-- no edge leaves it -->
    Fix: remove the layer, or connect it to its reader.
    """
    if all(layer.is_dead or layer.type == "Parameter" for layer in context.model.layers):
        return  # the model has no result
    for layer in context.layers:
        if layer.is_dead and not any(port.readers for port in layer.outputs):
            message = "no result and no variable depends on this layer; OpenVINO drops it"
            yield Found(message, layer, fix=context.fixes.without(layer))


@rule(Code.warning(213, "two layers have the same name", summed=True, danger=5.0, honest=True))
def duplicate_name(context: Context) -> Iterator[Found]:
    """Warning. OpenVINO accepts this. But tools that look up a layer by name, such as profilers or lists of layers to
    keep in f32, find only one of the two.
        <layer id="1" name="relu" ...>
        <layer id="2" name="relu" ...>
    Fix: rename one of them.
    """
    for model in context.models:
        first: dict[str, Layer] = {}
        for layer in model.layers:
            other = first.setdefault(layer.name, layer)
            if other is not layer:
                yield Found(f"layer {other.id} on line {other.line} has the same name", layer)


@rule(Code.warning(214, "two tensors have the same tensor name", summed=True, danger=5.0, honest=True))
def tensor_name(context: Context) -> Iterator[Found]:
    """Warning. Users address inputs and outputs by tensor name. OpenVINO loads the file, and the name finds only one of
    the two tensors.
        <port id="1" precision="FP32" names="a">   <!-- of layer 1 -->
        <port id="1" precision="FP32" names="a">   <!-- of layer 2 -->
    Fix: remove the name from the port that should not have it.
    """
    for model in context.models:
        for name, other, port in repeated_names(model.layers):
            if port.is_output:
                yield Found(f"{other.layer.title} has the same tensor name '{name}'", port)


@rule(NO_RESULT, needs_whole_graph=True)
def no_result(context: Context) -> Iterator[Found]:
    """Report a model without a result, even if it assigns a variable."""
    model = context.model
    if not model.outputs and not any(layer.type == "Result" for layer in model.layers):
        message = "the model has no Result: it has no outputs" if model.layers else "the model has no layers"
        yield Found(message, context.place)


@rule(Code.info(216, "nothing reads a Parameter"), needs_whole_graph=True)
def unused_parameter(context: Context) -> Iterator[Found]:
    """Info. The input must be fed, but it changes nothing.
        <layer id="1" name="mask" type="Parameter" version="opset1">   <!-- no edge leaves it -->
    Fix: remove the Parameter, or connect it to its reader.
    """
    for model in context.models:
        for port in model.inputs:
            if not port.readers:
                yield Found("nothing reads this Parameter", port.layer)


@rule(Code.error(218, "a layer declares more outputs than its operation has", tolerated=True))
def output_count(context: Context) -> Iterator[Found]:
    """Error; tolerated by `read_model`. OpenVINO refuses such a file: "node index is out of range". The line is the
    line of the first surplus port.
        <output>   <!-- of a ReLU -->
          <port id="1" precision="FP32" names="y">...
          <port id="2" precision="FP32" names="z">...
        </output>
    Fix: remove the port, or use the operation that has two outputs.
    """
    for layer in context.layers:
        has = sum(port.inferred is not None for port in layer.outputs)
        if not (has or layer.type == "Result"):
            continue
        # Inference reports ports that are read.
        if len(layer.outputs) > has and not any(port.readers for port in layer.outputs[has:]):
            message = f"the layer declares {plural(len(layer.outputs), 'output')}, but {layer.type} has {has}"
            yield Found(message, layer.outputs[has])


@rule(Code.warning(220, "two Results have the same name", danger=5.0))
def result_name(context: Context) -> Iterator[Found]:
    """Warning. The names of an output are the names of its tensor and those in the `output_names` of its Result.
    OpenVINO loads the file, and the name finds only one of the outputs.
        <layer id="2" name="first" type="Result" version="opset1" output_names="y">
        <layer id="3" name="second" type="Result" version="opset1" output_names="y">
    Fix: give each output its own name.
    """
    first: dict[str, Port] = {}
    for port in context.model.outputs:
        for name in sorted(port.names):
            other = first.setdefault(name, port)
            if other.source is None or port.source is None or other.source is port.source:
                continue
            if name not in other.source.names & port.source.names:  # this case is OVIR214
                yield Found(f"'{name}' is also the name of the output at {other.layer.title}", port.layer)


@rule(Code.warning(306, "a Parameter does not declare its element type"))
def no_element_type(context: Context) -> Iterator[Found]:
    """Warning. OpenVINO reads it as a dynamic type, and hardly any device compiles such a model.
        <data shape="2,3" />
    Fix: give it one: `<data shape="2,3" element_type="f32" />`.
    """
    for layer in context.by_type.get("Parameter", ()):
        if layer.operator is not None and "element_type" not in layer.attributes:
            message = "the Parameter has no attribute 'element_type': its element type is dynamic"
            yield Found(message, layer.data_place)


@rule(UNSPECIFIED)
def unspecified(context: Context) -> Iterator[Found]:
    """Report missing attributes for which OpenVINO has a default that the specification does not promise."""
    for layer in context.layers:
        if (op := layer.operator) is None:
            continue
        for spec in op.attributes.values():
            if spec.is_lacking(layer.attributes):
                if spec in [found for found, _ in misspelled_attributes(type(op), layer.attributes)]:
                    continue  # the reader has reported it as misspelled
                names = f"'{spec.name}'" + (f" or '{spec.instead}'" if spec.instead else "")
                message = f"the specification requires {names} of {layer.type}; {spec.assumed_text} is assumed"
                value = getattr(op, spec.field)
                is_plain = spec.instead is None and value not in (None, (), "")
                if unknown_attributes(type(op), layer.attributes):
                    is_plain = False  # one may be another name of it
                fix = context.fixes.attributes([layer], spec.name, spec.format(value)) if is_plain else None
                yield Found(message, layer.data_place, fix=fix)


@rule(Code.warning(309, "a missing attribute has another default in OpenVINO than in the specification"))
def misread(context: Context) -> Iterator[Found]:
    """Warning. ovir takes the specification's default, OpenVINO another value, so their results differ.
        <data anchors="1,2" axis="1" classes="20" coords="4" end_axis="3" num="1" />   <!-- of a RegionYolo -->
    Fix: write the value that is meant, here `do_softmax="true"` or `do_softmax="false"`.
    """
    for layer in context.layers:
        op = layer.operator
        for spec in () if op is None else op.attributes.values():
            if spec.name not in layer.attributes and spec.is_misread(op):
                message = f"'{spec.name}' of {layer.type} is {spec.format(spec.default)} by default, but OpenVINO takes"
                yield Found(f"{message} {spec.misread}", layer.data_place)


@rule(Code.info(307, "auto_pad overrides the given pads", fixable="--fix"))
def ignored_pads(context: Context) -> Iterator[Found]:
    """Info. With an `auto_pad` other than `explicit`, pads are computed from sizes and strides, and those in the file
    are ignored.
        <data ... pads_begin="1,1" pads_end="0,0" auto_pad="valid" />
    Fix: `auto_pad="explicit"` if the pads are meant, else `pads_begin="0,0"`.
    """
    for layer in context.layers:
        attributes = layer.attributes
        if "auto_pad" not in attributes or layer.operator is None or attributes["auto_pad"] in ("explicit", "notset"):
            continue
        auto_pad = attributes["auto_pad"]
        for name in ("pads_begin", "pads_end"):
            pads = attributes.get(name)
            if isinstance(pads, tuple) and any(pads):
                shown = ",".join(map(str, pads))
                message = f'{name}="{shown}" has no effect, because auto_pad is "{auto_pad}"'
                fix = context.fixes.attributes([layer], name, ",".join("0" * len(pads)))
                yield Found(message, layer.data_place, fix=fix)


def _by_variable(layers: list[Layer]) -> dict[str, list[Layer]]:
    found: dict[str, list[Layer]] = {}
    for layer in layers:
        found.setdefault(str(layer.attributes.get("variable_id")), []).append(layer)
    return found


@rule(Code.info(612, "a variable is read but never assigned"), needs_whole_graph=True)
def no_assign(context: Context) -> Iterator[Found]:
    """Info. The variable always holds its first value. Editing a model easily loses an Assign, because nothing depends
    on it.
        <layer id="2" name="read" type="ReadValue" version="opset6">   <!-- no Assign of its variable -->
    Fix: add the Assign, or read `init_value` directly.
    """
    assigned = _by_variable(context.by_type.get("Assign", []))
    for name, readers in _by_variable(context.by_type.get("ReadValue", [])).items():
        if name not in assigned:
            yield Found(f"no Assign writes the variable '{name}': it keeps its initial value", readers[0])


@rule(Code.warning(613, "two Assigns write the same variable"))
def assigned_twice(context: Context) -> Iterator[Found]:
    """Warning. Their order is undefined, and so is what the next run reads. OpenVINO loads the file.
        <layer id="4" name="assign" type="Assign" version="opset6">
        <layer id="5" name="again" type="Assign" version="opset6">   <!-- the same variable_id -->
    Fix: give each its own variable, or remove one.
    """
    for name, (first, *others) in _by_variable(context.by_type.get("Assign", [])).items():
        for layer in others:
            yield Found(f"the variable '{name}' is also assigned by {first.title}", layer)


@rule(Code.warning(615, "two ReadValues declare the same variable differently"))
def read_twice(context: Context) -> Iterator[Found]:
    """Warning. A variable may be read in several places, which must declare it equally. OpenVINO loads the file, and
    each reader uses its own declaration.
        <data variable_id="v" variable_type="f32" variable_shape="2" />
        <data variable_id="v" variable_type="f32" variable_shape="?" />
    Fix: declare it equally, with the wider shape.
    """
    for name, (first, *others) in _by_variable(context.by_type.get("ReadValue", [])).items():
        for layer in others:
            for key in ("variable_type", "variable_shape"):
                mine, theirs = layer.attributes.get(key), first.attributes.get(key)
                if mine != theirs:
                    message = f"{key} of the variable '{name}' is {mine}; {first.title} declares it as {theirs}"
                    yield Found(message, layer)


@rule(Code.warning(617, "the port map of a loop contradicts the length of the parts of an output"))
def joined_parts(context: Context) -> Iterator[Found]:
    """Warning. An output with `axis` joins the parts that the iterations give. OpenVINO's CPU plugin refuses the model
    when it compiles it if the `stride`, 1 by default, is not the length of a part, or if `start` and `end` of a
    TensorIterator leave out a part of the output; if sizes are unknown, it gives wrong results. ovir joins the parts
    whatever these attributes say.
        <output axis="0" stride="1" external_port_id="3" internal_layer_id="4" />   <!-- of a result of 2 rows -->
    Fix: write the length of a part as `stride`, with a minus if the parts are joined in reverse order; `start` is 0 and
    `end` is -1, or in reverse order -1 and 0.
    """
    for layer, op in context.usable:
        if not isinstance(op, IterationBase) or "body" not in op.wiring:
            continue
        for item in by_output(op.wiring["body"].outputs):
            part, whole = layer.bodies["body"].outputs[item.result].type.shape, layer.outputs[item.external].type.shape
            if item.axis is None or not part.rank or not whole.rank:
                continue
            length, total = part[item.axis], whole[item.axis]
            ends = [end + total.lower + 1 if end < 0 else end for end in (item.start, item.end)]
            is_all = total.is_dynamic or ends[:: 1 if item.stride > 0 else -1] == [0, total.lower]
            if length.is_static and length.lower != abs(item.stride):
                why = f"has the stride {item.stride}, but joins parts of length {length}"
            elif isinstance(op, TensorIterator) and total != 0 and not is_all:
                why = f"has the start {item.start} and the end {item.end}, which leave out a part of its length {total}"
            else:
                continue
            effect = "OpenVINO's CPU plugin refuses that, or gives wrong results"
            yield Found(f"{item.target} {why} along axis {item.axis}: {effect}", replace(layer.place, line=item.line))


@rule(Code.info(702, "a layer passes its input on unchanged", summed=True, fixable="--fix"))
def no_op(context: Context) -> Iterator[Found]:
    """Info. Examples are a Convert to the same type, a Reshape to the same shape, and a Transpose that changes nothing.
    OpenVINO removes such layers when it compiles; people still have to read them.
        <data destination_type="f32" />   <!-- of f32 -->
    Fix: connect its input to its readers.
    """
    for layer, op in context.usable:
        if len(layer.outputs) != 1 or not layer.inputs:
            continue
        why = op.why_unchanged([port.type for port in layer.inputs], layer.outputs[0].type)
        if why is not None:
            fix = context.fixes.without(layer, layer.inputs[0].source)
            yield Found(f"the layer returns its input unchanged: {why}", layer, fix=fix)


@rule(Code.info(706, "two layers in a row undo each other", summed=True, fixable="--fix"))
def cancelled(context: Context) -> Iterator[Found]:
    """Info. A Transpose directly follows another one that it undoes. OpenVINO removes both when it compiles.
        <layer id="3" name="back" type="Transpose" version="opset1">   <!-- order 1,0 after order 1,0 -->
    Fix: remove both, and connect the input to the readers.
    """
    orders = {
        layer: order
        for layer, op in context.usable
        if layer.inputs and (order := op.permutation([port.type for port in layer.inputs])) is not None
    }
    for layer, second in orders.items():
        source = layer.inputs[0].source
        first = orders.get(source.layer) if source is not None else None
        if source is None or first is None or len(first) != len(second) or first == sorted(first):
            continue
        if [first[axis] for axis in second] == list(range(len(first))):
            fix = context.fixes.without(layer, source.layer.inputs[0].source)
            yield Found(f"the layer undoes {source.layer.title}", layer, fix=fix)


@rule(Code.info(704, "CPU and GPU plugins compute an f64 tensor in f32", summed=True))
def double(context: Context) -> Iterator[Found]:
    """Info. Devices lose the digits beyond f32, which shows when you compare with the original model. The diagnostic
    names the first layer that makes f64 from another type.
        <data shape="2,3" element_type="f64" />
    Fix: use f32 if that is enough; it is also faster.
    """
    for layer in context.layers:
        for port in layer.outputs:
            is_double = port.inferred is not None and port.inferred.element_type is f64
            if is_double and not any(read.element_type is f64 for read in layer.inputs):
                yield Found("the layer returns f64, which CPU and GPU plugins compute in f32", layer)


@rule(PINNED_SIZE)
def pinned_size(context: Context) -> Iterator[Found]:
    """Report constants that fix a size which an input leaves open."""
    for d in pinned_sizes(context.model):
        yield Found(d.message, Place(d.file, d.line, d.layer, d.layer_id), d.hint)


@rule(Code.info(707, "an input of the model has an unknown rank"))
def unknown_rank(context: Context) -> Iterator[Found]:
    """Info. OpenVINO reads the model, but most devices cannot compile it.
        <data shape="..." element_type="f32" />
    Fix: declare the rank, as in `shape="?,?"`, or give a shape before compiling: `model.reshape`.
    """
    for port in context.model.inputs:
        if port.shape.rank is None:
            message = f"input '{port.any_name}' has an unknown rank: most devices cannot compile such a model"
            yield Found(message, port.layer, hint="give it a shape with `model.reshape`")
