"""Old releases of OpenVINO, each in a process of an interpreter that has a package of it.

The packages are installed from the package index on first use, in ``~/.cache/ovir/releases`` or the folder that the
environment variable ``OVIR_RELEASES`` names, and kept there. Interpreters are those on ``PATH`` and those of pyenv.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.engines.process import EngineProcess
from ovir.fuzzing.targets import precise
from ovir.lowering.releases import IR_VERSION_11, parse_release


@dataclass(frozen=True)
class Package:
    """The package of a release, with a NumPy that it runs with, and the interpreters that there are wheels for."""

    requirements: tuple[str, ...]
    interpreters: tuple[str, ...]


PACKAGES = {
    "2021.4": Package(("openvino==2021.4.2", "numpy<1.20"), ("3.8", "3.7", "3.6")),
    "2022.1": Package(("openvino==2022.1.0",), ("3.9", "3.8", "3.7")),
    "2022.3": Package(("openvino==2022.3.0",), ("3.10", "3.9", "3.8")),
    "2023.0": Package(("openvino==2023.0.0", "numpy<2"), ("3.11", "3.10", "3.9", "3.8")),
    "2023.3": Package(("openvino==2023.3.0", "numpy<2"), ("3.11", "3.10", "3.9", "3.8")),
    "2024.6": Package(("openvino==2024.6.0",), ("3.12", "3.11", "3.10", "3.9")),
    "2025.4": Package(("openvino==2025.4.0",), ("3.13", "3.12", "3.11", "3.10")),
}
"""The releases that can be run; wheels of 2022.1 and 2022.3 bind the versions of their requirements themselves."""

SECONDS = 30.0
"""What a request may take; the start of a process is part of the first one."""


class NoRuntimeError(Exception):
    """There is no interpreter for a release, or its package cannot be installed; the message says why."""


# --------------------------------------------------------------------------- environments


def interpreter_for(release: str) -> Path:
    """Return an interpreter that has wheels of a release; raise NoRuntimeError if there is none."""
    versions = PACKAGES[release].interpreters
    for version in versions:
        if (found := next(_interpreters(version), None)) is not None:
            return found
    raise NoRuntimeError(
        f"OpenVINO {release} needs an interpreter of Python {' or '.join(versions)}, and there is none"
    )


def _interpreters(version: str) -> Iterator[Path]:
    """Yield the interpreters of a version: first those of pyenv, whose programs on ``PATH`` may refuse to run."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        yield Path(sys.executable)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob(f"versions/{version}.*/bin/python"))
    if (found := shutil.which(f"python{version}")) is not None and "shims" not in Path(found).parts:
        yield Path(found)


def is_installed(release: str) -> bool:
    """Return whether the package of a release is in the folder of packages, with an interpreter for it."""
    try:
        return _folder(release, interpreter_for(release)).exists()
    except NoRuntimeError:
        return False


def installed(release: str) -> tuple[Path, Path]:
    """Return the interpreter of a release and the folder with its package, which is installed if it is not yet there.

    Raises NoRuntimeError if there is no interpreter, or pip fails.
    """
    interpreter = interpreter_for(release)
    folder = _folder(release, interpreter)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        _install(interpreter, release, folder)
    return interpreter, folder


def _folder(release: str, interpreter: Path) -> Path:
    """Return the folder of a package, which depends on the interpreter's version and on what is installed."""
    command = [os.fspath(interpreter), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    home = os.environ.get("OVIR_RELEASES") or Path.home() / ".cache" / "ovir" / "releases"
    return Path(home) / f"{'-'.join(PACKAGES[release].requirements).replace('==', '-')}-python{version}"


def _install(interpreter: Path, release: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        target = Path(work) / "packages"
        requirements = PACKAGES[release].requirements
        command = [os.fspath(interpreter), "-m", "pip", "install", "--quiet", f"--target={target}", *requirements]
        # Constraints are those of the environment of ovir, which needs newer packages.
        environment = {**os.environ, "PIP_CONSTRAINT": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        pip = subprocess.run(command, env=environment, capture_output=True, text=True)
        if pip.returncode:
            last = (pip.stderr.strip().splitlines() or ["it printed nothing"])[-1]
            raise NoRuntimeError(f"pip cannot install OpenVINO {release}: {last}")
        try:
            target.rename(folder)
        except OSError:
            if not folder.exists():  # else another process has installed it meanwhile
                raise


# --------------------------------------------------------------------------- runs


class OldRuntime(EngineProcess):
    """A release of OpenVINO that runs models on the CPU, in f32. Use it in a ``with`` block."""

    def __init__(self, release: str) -> None:
        self.release = release
        is_first = parse_release(release) < IR_VERSION_11
        name = f"python:{Path(__file__).with_name('inference_engine.py')}:run" if is_first else "openvino:CPU"
        config = {} if is_first else precise(f"runtime:{release}")
        if parse_release(release) >= (2024, 0):
            config["KV_CACHE_PRECISION"] = "f32"
        super().__init__(name, config, timeout=SECONDS, interpreter=os.fspath(_program(*installed(release))))

    def run(self, path: Path, model: ovir.Model, steps: Sequence[Mapping[str, Array]]) -> list[list[Array]]:
        """Run a file with the inputs and outputs of a model; return the outputs by position for each step.

        All steps run in one request, which keeps its state. Inputs have the names of tensors or Parameters.
        """
        types = [port.element_type for port in model.inputs]
        loaded = self.load(path, types=types)
        found = []
        for step in steps:
            given = [np.asarray(array_of(step, port)) for port in model.inputs]
            arrays = [array.astype(kind.to_dtype(), copy=False) for array, kind in zip(given, types, strict=True)]
            found.append(loaded.infer(arrays, keeps_state=True))
        loaded.unload()
        return found


def _program(interpreter: Path, folder: Path) -> Path:
    """Return a program that runs an interpreter with the packages of a folder."""
    program = folder.with_name(f"{folder.name}.sh")
    new = program.with_name(f".{program.name}-{os.getpid()}")
    new.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{interpreter}" -s "$@"\n')
    new.chmod(0o700)
    return new.replace(program)


def array_of(step: Mapping[str, Array], port: ovir.Port) -> Array:
    """Return the array for an input, by the name of its tensor or its Parameter."""
    return next(step[name] for name in (*port.names, port.layer.name) if name in step)


# --------------------------------------------------------------------------- expected outputs


def steps_of(path: Path) -> list[dict[str, Array]]:
    """Return the tensors of an .npz by step: ``name__step2`` is ``name`` in step 2, ``name__bf16`` has the bits of
    another element type."""
    steps: dict[int, dict[str, Array]] = {}
    with np.load(path, allow_pickle=True) as archive:
        for key in archive.files:
            array = archive[key]
            bits = re.fullmatch(r"(.*?)__(bf16|f8e4m3|f8e5m2|f8e8m0|i4|u4|f4e2m1)((?:__step\d+)?)", key)
            if bits is not None:
                key = bits[1] + bits[3]
                array = np.ascontiguousarray(array).view(ElementType.parse(bits[2]).to_dtype()).reshape(array.shape)
            step = re.fullmatch(r"(.*)__step(\d+)", key)
            steps.setdefault(int(step[2]) if step else 0, {})[step[1] if step else key] = array
    return [steps[number] for number in sorted(steps)]
