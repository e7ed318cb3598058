"""The names of the package ovir, which are loaded when they are first used."""

import inspect
import re
import subprocess
import sys
from enum import EnumType
from pathlib import Path

import pytest

import ovir
from ovir.ops.base.opsets import NEWEST_OPSET

ROOT = Path(__file__).parent.parent


def test_every_public_name_is_loaded_from_the_module_that_defines_it() -> None:
    assert sorted(ovir._MODULES) == ovir.__all__
    for name in ovir.__all__:
        assert getattr(ovir, name).__module__ == ovir._MODULES[name]


def test_every_public_name_shows_which_arguments_it_takes() -> None:
    """Only the attributes of an operation, which its class names, may have any names and types."""
    for name in ovir.__all__:
        function = getattr(ovir, name)
        if isinstance(function, EnumType):
            continue  # its signature is Python's
        parameters = inspect.signature(function, eval_str=False).parameters.values()
        open_ended = [x for x in parameters if x.kind in (x.VAR_POSITIONAL, x.VAR_KEYWORD)]
        assert [x.annotation for x in open_ended if x.annotation in ("Any", x.empty)] == ["Any"] * (
            name == "Operator"
        ), name
    assert [*inspect.signature(ovir.Model).parameters] == ["results", "parameters", "name", "sinks"]


def test_a_star_import_gives_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from ovir import *", names)
    assert set(ovir.__all__) <= names.keys()


def test_dir_lists_names_that_are_not_loaded_yet() -> None:
    code = "import ovir; print(set(ovir.__all__) <= set(dir(ovir)), 'read_model' in vars(ovir))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_dir_lists_only_public_names() -> None:
    opsets = [f"opset{number}" for number in range(1, NEWEST_OPSET + 1)]
    assert sorted(dir(ovir)) == sorted([*ovir.__all__, *opsets, "__version__"])


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ovir' has no attribute 'read_modle'"):
        ovir.read_modle  # noqa: B018


def test_opsets_are_loaded_when_they_are_first_used() -> None:
    code = "import ovir; print(ovir.opset13.relu.__name__, ovir.opset17.erfinv.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["relu", "erfinv"]
    for name in ("opset0", f"opset{NEWEST_OPSET + 1}", "opset", "opsetx"):
        with pytest.raises(AttributeError, match=f"module 'ovir' has no attribute '{name}'"):
            getattr(ovir, name)


def test_names_that_completion_leaves_out_are_not_in_the_reference() -> None:
    """A name may be internal to one class and public in another, such as input_index."""
    filters = "|".join(re.findall(r'"!(\^\([a-z_|]+\)\$)"', (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    classes = (ovir.Model, ovir.Layer, ovir.Port, ovir.CompiledModel)
    public = {name for cls in classes for base in cls.__mro__ for name in vars(base) if name not in cls._internal}
    internal = {name for cls in classes for name in cls._internal}
    assert internal
    missing = [name for name in internal if re.match(filters, name) is None]
    assert set(missing) <= public
