"""Answers a shell that completes a command line, with argcomplete."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ovir.cli.main import COMMANDS, parser
from ovir.cli.options.values import FileName
from ovir.diagnostics.errors import Diagnostics
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.names import tensor_names
from ovir.ir.reader import load
from ovir.lowering.releases import RELEASES, release_text
from ovir.ops.base.opsets import OPERATIONS, TOKENIZERS

Completer = Callable[..., Iterable[str]]

DEVICES = ("openvino:CPU", "openvino:GPU", "openvino:NPU")
_ARRAYS = (".npz", ".npy", ".png", ".jpg", ".jpeg")


def complete() -> None:
    """Write the completions at the cursor to the shell, and end the process."""
    import argcomplete  # only completion needs it

    words = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))].split(" ")
    typed = [word for word in words[:-1] if word in COMMANDS]
    found = parser(typed[:1] or COMMANDS)
    for action in _actions(found):
        if not isinstance(action, argparse._SubParsersAction) and action.choices is None:
            action.completer = _completer_of(action)  # type: ignore[attr-defined]  # argcomplete looks for it
    argcomplete.autocomplete(found, always_complete_options=False)


def _actions(found: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its commands."""
    for action in found._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _completer_of(action: argparse.Action) -> Completer:
    """Return the function that finds values of an argument that has no choices."""
    endings = re.findall(r"\.[a-z]\w*", str(action.metavar))
    if action.dest == "codes":
        from ovir.checks.rules import CODES

        return _one_of(CODES)
    if action.dest == "operations":
        return _one_of((*OPERATIONS, *TOKENIZERS))
    if action.metavar == "SIDE":
        return _either(_one_of(DEVICES), _files((".xml", ".npz", ".onnx")))
    if action.dest == "input":
        return _either(_value_of_input, _names(_inputs, "="))
    if action.dest == "target":
        return _targets
    if action.metavar == "RELEASE":
        return _one_of([release_text(release) for release in RELEASES])
    if action.metavar == "NUMBER":
        return _one_of([str(opset) for opset in RELEASES.values()])
    if (named := _NAMED.get(action.option_strings[-1] if action.option_strings else "")) is not None:
        return _names(*named)
    if isinstance(action.type, type) and issubclass(action.type, FileName):
        return _files(tuple(endings))
    return _one_of(())


def _names(of: Callable[[LayerGraph], Iterable[str]], end: str = "") -> Completer:
    """Return a function that finds names in the model of the command line, also behind a comma, each with an end."""

    def found(prefix: str, *, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        path = getattr(parsed_args, "path", None)
        document = None
        if isinstance(path, str) and os.path.isfile(path):
            document = load(path, None, LayerGraph, Diagnostics(), need_weights=False)
        if document is None:
            return []
        before, comma, start = prefix.rpartition(",")
        names = dict.fromkeys(name for name in of(document.model) if name)
        return [f"{before}{comma}{name}{end}" for name in names if name.startswith(start)]

    return found


def _inputs(model: LayerGraph) -> Iterator[str]:
    return (port.any_name for port in model.inputs)


def _tensors(model: LayerGraph) -> Iterator[str]:
    """Yield the names of layers, without constants and Results, and those of tensors."""
    yield from (layer.key for layer in model.walk() if layer.type not in ("Const", "Result"))
    yield from tensor_names(model)


_NAMED: dict[str, tuple[Callable[[LayerGraph], Iterable[str]], str]] = {
    **dict.fromkeys(("--shape", "--fix-input", "--input-type", "--input-layout", "--resize"), (_inputs, "=")),
    **dict.fromkeys(("--add-output", "--add-nms", "--tap", "--inputs", "--outputs"), (_tensors, "")),
    **dict.fromkeys(("--output", "--remove-output"), (lambda model: (p.any_name for p in model.outputs), "")),
    "--rename": (_tensors, "="),
    "--set-constant": (lambda model: (layer.key for layer in model.walk() if layer.type == "Const"), "="),
}
"""The options whose values begin with names in the model, which names these are, and what follows them."""


def _targets(prefix: str, **_: Any) -> list[str]:
    try:
        from ovir.export.support import OPENED  # needs onnx
    except ImportError:
        return []
    names = ("onnxruntime:{}.{}".format(*release) for release in OPENED)
    return [name for name in names if name.startswith(prefix)]


def _one_of(values: Iterable[str]) -> Completer:
    return lambda prefix, **_: [value for value in values if value.startswith(prefix)]


def _either(*completers: Completer) -> Completer:
    return lambda prefix, **more: [found for completer in completers for found in completer(prefix, **more)]


def _files(endings: tuple[str, ...]) -> Completer:
    """Return a function that finds files with these endings, and folders; without endings, all files."""
    return lambda prefix, **_: _matching_files(prefix, endings)


def _value_of_input(prefix: str, **_: Any) -> list[str]:
    """Return files for ``NAME=FILE`` or ``FILE``."""
    name, equals, path = prefix.rpartition("=")
    return [f"{name}{equals}{found}" for found in _matching_files(path, _ARRAYS)]


def _matching_files(prefix: str, endings: tuple[str, ...]) -> list[str]:
    """Return the paths that begin with a text: first the files with these endings, then folders."""
    head, start = os.path.split(prefix)
    try:
        names = sorted(os.listdir(os.path.expanduser(head) or "."))
    except OSError:
        return []
    paths = [os.path.join(head, name) for name in names if name.startswith(start) and (start or name[0] != ".")]
    folders = [f"{path}/" for path in paths if os.path.isdir(os.path.expanduser(path))]
    files = [path for path in paths if f"{path}/" not in folders]
    return [path for path in files if path.lower().endswith(endings)] + folders if endings else files + folders
