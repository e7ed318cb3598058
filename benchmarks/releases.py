"""Old releases of OpenVINO, each in a process of an interpreter that has a package of it.

The packages are installed from the package index on first use, in ``~/.cache/ovir/releases`` or the folder that the
environment variable ``OVIR_RELEASES`` names, and kept there. Interpreters are those on ``PATH`` and those of pyenv.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.encoding import decode, encode
from ovir.system.processes import ChildProcess


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


class RefusedError(Exception):
    """A release refused a model or failed to run it."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage
        """Which stage failed: ``read``, ``compile``, ``run``, or ``crash`` for a process that has ended."""
        self.message = message


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


class OldRuntime:
    """A release of OpenVINO that runs models on the CPU, in f32. Use it in a ``with`` block."""

    def __init__(self, release: str) -> None:
        self.release = release
        self.interpreter, self.folder = installed(release)
        self.process: ChildProcess | None = None
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as this object

    def run(self, path: Path, model: ovir.Model, steps: Sequence[Mapping[str, Array]]) -> list[list[Array]]:
        """Run a file with the inputs and outputs of a model; return the outputs by position for each step.

        All steps run in one request, which keeps its state. Inputs have the names of tensors or Parameters.
        """
        inputs = [port.layer.name for port in model.inputs]
        outputs = [_name_of_data(port.layer.inputs[0].source) for port in model.outputs]
        fed = [[_to_wire(array_of(step, port), port.element_type) for port in model.inputs] for step in steps]
        status, value = self._call((os.fspath(path), inputs, outputs, fed))
        if status != "ok":
            raise RefusedError(status, value)
        return [[_from_wire(*tensor) for tensor in step] for step in value]

    def close(self) -> None:
        self._stop()
        self._messages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, request: Any) -> tuple[str, Any]:
        if self.process is None:
            self.process = ChildProcess(
                [os.fspath(self.interpreter), "-s", os.fspath(Path(__file__).with_name("release_child.py"))],
                env={**os.environ, "PYTHONPATH": os.fspath(self.folder), "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
            )
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with process.killed_after(SECONDS):
                pickle.dump(request, process.stdin, protocol=4)
                process.stdin.flush()
                answer: tuple[str, Any] = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._stop()
            self._messages.seek(0)
            last = self._messages.read()[-300:].decode("utf-8", "replace").split("\n")
            return "crash", f"the process ended with status {process.returncode} {' '.join(last).strip()}"
        return answer

    def _stop(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None


def array_of(step: Mapping[str, Array], port: ovir.Port) -> Array:
    """Return the array for an input, by the name of its tensor or its Parameter."""
    return next(step[name] for name in (*port.names, port.layer.name) if name in step)


def _name_of_data(port: ovir.Port | None) -> str:
    """Return what the Inference Engine calls a tensor."""
    assert port is not None
    return port.layer.name if len(port.layer.outputs) == 1 else f"{port.layer.name}.{port.layer.outputs.index(port)}"


def _to_wire(array: Array, element_type: ElementType) -> tuple[str, tuple[int, ...], Any]:
    array = np.asarray(array)
    if element_type.kind == "string":
        return "string", array.shape, [str(text) for text in array.reshape(-1)]
    if array.dtype != element_type.to_dtype():
        array = array.astype(element_type.to_dtype())
    return str(element_type), array.shape, encode(array, element_type).tobytes()


def _from_wire(name: str, shape: tuple[int, ...], content: Any) -> Array:
    element_type = ElementType.parse(name)
    if element_type.kind == "string":
        return np.array(content, dtype=element_type.to_dtype()).reshape(shape)
    return decode(np.frombuffer(content, np.uint8), element_type, shape)


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
