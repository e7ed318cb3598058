"""``ovir --version``: the versions of ovir, and of installed packages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import ovir
from ovir.cli.terminal.output import say

PACKAGES = (
    *("numpy", "lxml", "networkx", "ml_dtypes", "threadpoolctl"),
    *("openvino", "openvino-tokenizers", "onnxruntime", "onnx", "onnx_ir"),
    *("pillow", "regex", "sentencepiece", "jinja2", "plotly", "itables", "ai-edge-model-explorer"),
    *("pycocotools", "distributed", "argcomplete"),
)
"""The packages that ovir uses: required ones, other engines, and those of its extras."""


class VersionAction(argparse.Action):
    """The option ``--version``, which looks for packages only when it is given."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help="print versions, and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for line in _lines():
            say(line)
        parser.exit()


def _lines() -> Iterator[str]:
    """Yield one line for ovir, one for the interpreter, and one for each package that is installed."""
    import platform  # most commands need neither of them
    from importlib.metadata import PackageNotFoundError, version

    yield f"ovir {ovir.__version__}"
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
