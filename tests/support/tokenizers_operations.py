"""Runs of single operations of openvino_tokenizers."""

from typing import Any

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.tokenizers.base import packed
from support.builder import Net, output


def strings(*texts: str | bytes) -> tuple[Array, Array, Array]:
    items = [text.encode() if isinstance(text, str) else text for text in texts]
    return packed(items, (len(items),))


def model_of(kind: str, *inputs: Array, outputs: int = 1, **attributes: Any) -> ovir.Model:
    """Return a model with one layer of the extension, which takes such inputs."""
    net = Net()
    types = [str(ElementType.from_dtype(array.dtype)) for array in inputs]
    sources = [
        net.parameter(f"p{i}", ",".join(map(str, array.shape)), element_type)
        for i, (array, element_type) in enumerate(zip(inputs, types, strict=True))
    ]
    layer = net.op(kind, *sources, outputs=outputs, **attributes)
    for index in range(outputs):
        net.result(output(layer, index))
    xml = net.xml().replace(f'type="{kind}" version="opset1"', f'type="{kind}" version="extension"')
    return ovir.read_model(xml.encode())


def run(kind: str, *inputs: Array, warnings: list[str] | None = None, **options: Any) -> list[Array]:
    """Return the outputs of one layer of the extension; ``warnings`` gets the messages of its run."""
    results = ovir.compile_model(model_of(kind, *inputs, **options))(list(inputs))
    if warnings is not None:
        warnings += [diagnostic.message for diagnostic in results.diagnostics]
    return list(results.values())
