"""Write ``index.py``, the table that names the module of each operation: ``python -m ovir.ops.make_index``."""

from __future__ import annotations

from pathlib import Path

from ovir.ops import import_all
from ovir.ops.base.registry import all_registered

COMMAND = "python -m ovir.ops.make_index"
INDEX = Path(__file__).with_name("index.py")


def index_text() -> str:
    """Return the text of ``index.py`` for the operations that the modules of the package register."""
    import_all()
    package = f"{__package__}."
    entries = sorted(all_registered().items(), key=lambda entry: (entry[0][0].lower(), entry[0][1]))
    rows = [f'    "{name}-{opset}": "{cls.__module__.removeprefix(package)}",' for (name, opset), cls in entries]
    head = f'"""The module of each operation version. Written by ``{COMMAND}``: do not edit it by hand."""'
    return "\n".join([head, "", "MODULES = {", *rows, "}", ""])


def main() -> None:
    INDEX.write_text(index_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
