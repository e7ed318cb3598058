"""Settings of ``ovir check``, from its command line and from a configuration file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ovir.checks.rules import CODES
from ovir.core.reading import read_bytes
from ovir.diagnostics.codes import DEVICE_ANSWER, NEVER_IGNORED, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean
from ovir.lowering.releases import parse_release


@dataclass(frozen=True)
class Settings:
    """The options that a configuration file can set as well."""

    select: tuple[str, ...] = ()
    """Codes, or beginnings of codes; none means all."""
    ignore: tuple[str, ...] = ()
    fail_on: Severity = Severity.ERROR
    no_weights: bool = False
    runtime: tuple[int, int] | None = None
    device: str | None = None
    baseline: str | None = None
    per_path_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Codes to ignore in files whose path from ``folder``, or whose name, matches a pattern."""
    folder: str = "."
    """The folder of the configuration file."""

    def selects(self, code: str) -> bool:
        return not self.select or code.startswith(self.select)

    def wants(self, code: str) -> bool:
        return self.selects(code) and not code.startswith(self.ignore)

    def reports(self, diagnostic: Diagnostic, file: str) -> bool:
        """Return whether a diagnostic of a file is requested."""
        return diagnostic.code in NEVER_IGNORED or self.wants_in(file, diagnostic.code)

    def wants_in(self, file: str, code: str) -> bool:
        """Return whether diagnostics of a code are requested for a file."""
        return self.wants(code) and not code.startswith(tuple(self.ignored_in(file).values()))

    def ignored_in(self, file: str) -> dict[str, str]:
        """Return the codes, or beginnings of codes, that are ignored in a file, by their names in messages."""
        ignored = {f"ignore {code}": code for code in self.ignore}
        if not self.per_path_ignores:
            return ignored
        from fnmatch import fnmatchcase

        path = os.path.relpath(file, self.folder).replace(os.sep, "/")
        names = path, os.path.basename(path)
        found = {p: codes for p, codes in self.per_path_ignores.items() if any(fnmatchcase(name, p) for name in names)}
        return ignored | {f"per-path-ignores {p} {code}": code for p, codes in found.items() for code in codes}


def parse_codes(texts: Iterable[str], *, to_ignore: bool = False) -> tuple[str, ...]:
    """Return codes, or beginnings of codes, in full: ``402`` and ``ovir402`` mean ``OVIR402``; raise ValueError for
    others, and ``to_ignore`` for those that are reported in any case."""
    codes = []
    for part in filter(None, (part.strip() for text in texts for part in text.split(","))):
        code = f"OVIR{part}" if part.isdecimal() else part.upper()
        meant = [known for known in CODES if known.startswith(code)]
        if not re.fullmatch(r"OVIR\d{0,3}", code, re.ASCII) or not meant:
            raise ValueError(f"{part}: no diagnostic has this code; `ovir explain` lists them all")
        if not any(known < "OVIR8" or known in _OTHERS for known in meant):
            raise ValueError(f"{part}: `ovir check` does not report it; it belongs to runs, or to wrong usage")
        if to_ignore and NEVER_IGNORED.issuperset(meant):
            raise ValueError(f"{part}: this cannot be ignored, because a file that was not checked must not pass")
        codes.append(code)
    return tuple(codes)


_OTHERS = NEVER_IGNORED | {DEVICE_ANSWER.id}
"""Codes from OVIR8xx on that a check may report; the others belong to runs and wrong usage."""


# --------------------------------------------------------------------------- the file


def find_settings(folder: str) -> Settings:
    """Return the settings of the nearest ovir.toml, or pyproject.toml that has some, in a folder or its parents."""
    folder = os.path.abspath(folder)
    while True:
        for name, tables in _TABLES.items():
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (found := _read(path, tables)) is not None:
                return found
        if (parent := os.path.dirname(folder)) == folder:
            return Settings()
        folder = parent


_TABLES = {"ovir.toml": ("check", "tool.ovir.check"), "pyproject.toml": ("tool.ovir.check",)}
"""The configuration files, and the tables in each that may hold settings."""
_KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "ovir.toml": {"": ("check", "tool"), "tool": ("ovir",), "tool.ovir": ("check",)},
    "pyproject.toml": {"tool.ovir": ("check",)},
}
"""The names that ovir knows in the outer tables of each file; others of a pyproject.toml belong to other tools."""


def _read(path: str, tables: tuple[str, ...]) -> Settings | None:
    raw = read_bytes(path)
    name = os.path.basename(path)
    if name == "pyproject.toml" and b"tool.ovir" not in raw and b"check" not in raw:
        return None
    import tomllib  # importing it takes longer than checking most files

    try:
        text = raw.decode()
        content: Any = tomllib.loads(text)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        _refuse(f"not valid TOML: {byte}", path, raw.count(b"\n", 0, error.start) + 1)
    except ValueError as error:
        line = re.search(r"\(at line (\d+)", str(error))
        _refuse(f"not valid TOML: {error}", path, int(line[1]) if line else raw.rstrip(b"\n").count(b"\n") + 1)
    except RecursionError:
        _refuse("not valid TOML: arrays or tables are nested too deep", path, None)
    for outer, known in _KNOWN[name].items():
        _refuse_unknown(_table(content, outer), outer, known, path, text)
    values_by_table = {table: values for table in tables if (values := _table(content, table)) is not None}
    if len(values_by_table) > 1:
        _refuse("[check] and [tool.ovir.check] are both given; keep one of them", path, None)
    for table, values in values_by_table.items():
        return _settings(values, table, path, text)
    return None


def _table(content: Any, name: str) -> dict[str, Any] | None:
    for part in name.split(".") if name else ():
        content = content.get(part) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else None


def _refuse_unknown(table: dict[str, Any] | None, name: str, known: tuple[str, ...], path: str, text: str) -> None:
    """Raise InputError for a key that would have no effect in one of the tables around the settings."""
    for key, value in (table or {}).items():
        if key in known and isinstance(value, dict):
            continue
        line = _line_of(text, name, key)
        wanted = f"the table [{_TABLES[os.path.basename(path)][0]}]"
        if key in _VALUES:
            _refuse(f"{key}: this option has no effect here; it belongs in {wanted}", path, line)
        there = f" in [{name}]" if name else ""
        meant = did_you_mean(key, () if key in known else known) or f"options are in {wanted}"
        what = "this is not a table" if key in known else f"there is no such key or table{there}"
        _refuse(f"{key}: {what}; {meant}", path, line)


def _settings(table: dict[str, Any], name: str, path: str, text: str) -> Settings:
    values: dict[str, Any] = {}
    for key, value in table.items():
        try:
            if key not in _VALUES:
                meant = did_you_mean(key, _VALUES) or f"known are {', '.join(_VALUES)}"
                raise ValueError(f"there is no such option; {meant}")
            values[key.replace("-", "_")] = _VALUES[key](value)
        except (ValueError, InputError) as error:
            message = error.diagnostic.message if isinstance(error, InputError) else str(error)
            _refuse(f"{key}: {message}", path, _line_of(text, name, key))
    settings = Settings(**values, folder=os.path.dirname(path))
    if settings.baseline is not None:
        return replace(settings, baseline=os.path.join(settings.folder, settings.baseline))
    return settings


def _line_of(text: str, table: str, key: str) -> int | None:
    """Return the line of a key in a table: its own line, or the line of its subtable or of the table."""
    parts = (*filter(None, table.split(".")), key)
    if len(parts) == 1:
        own = re.compile(rf"\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*[].=]")
        return next((i for i, line in enumerate(text.splitlines(), 1) if own.match(line)), None)
    header = r"\s*\[\s*" + r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in parts[:-1])
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(header, line)), 0)
    quoted = rf"[\"']?{re.escape(key)}[\"']?"
    wanted = re.compile(rf"\s*{quoted}\s*=|{header}\s*\.\s*{quoted}")
    return next((i for i, line in enumerate(lines[start:], start + 1) if wanted.match(line)), start + 1)


def _refuse(message: str, path: str, line: int | None) -> NoReturn:
    raise InputError.usage(message, Place(path, line))


# --------------------------------------------------------------------------- values


def _codes(value: Any) -> tuple[str, ...]:
    return parse_codes(_texts(value))


def _ignored(value: Any) -> tuple[str, ...]:
    """Convert a list of codes, or a table of codes with the reasons for ignoring them."""
    if isinstance(value, dict) and not all(isinstance(reason, str) and reason.strip() for reason in value.values()):
        raise ValueError(
            f"a table of codes and reasons, such as {{ OVIR702 = 'a reason' }}, is expected, got {value!r}"
        )
    return parse_codes(_texts(list(value) if isinstance(value, dict) else value), to_ignore=True)


def _texts(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, (str, int)) or isinstance(item, bool):
            raise ValueError(f"a list of codes such as ['OVIR402', 'OVIR7'] is expected, got {value!r}")
        yield str(item)


def _severity(value: Any) -> Severity:
    if value not in list(Severity):
        raise ValueError(f"one of {', '.join(Severity)} is expected, got {value!r}")
    return Severity(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"true or false is expected, got {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"a text is expected, got {value!r}")
    return value


def _release(value: Any) -> tuple[int, int]:
    return parse_release(_text(value))


def _device(value: Any) -> str:
    from ovir.checks.checker import parse_device

    parse_device(_text(value))
    return _text(value)


def _per_path(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError(f"a table of patterns and codes is expected, got {value!r}")
    return {pattern: _ignored(codes) for pattern, codes in value.items()}


_VALUES: dict[str, Callable[[Any], Any]] = {
    "select": _codes,
    "ignore": _ignored,
    "fail-on": _severity,
    "no-weights": _boolean,
    "runtime": _release,
    "device": _device,
    "per-path-ignores": _per_path,
    "baseline": _text,
}
"""The type of each option."""
