"""The values of options: their types, the texts that stand for several things, and files to write."""

from __future__ import annotations

import argparse
import math
import re
import sys
import warnings
from collections.abc import Callable
from typing import ClassVar, NoReturn, Self

from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import readable


def raise_usage_error(message: str, hint: str | None = None) -> NoReturn:
    """Raise InputError for a command line that makes no sense."""
    raise InputError.usage(message, hint=hint)


def split_known(
    option: str, text: str, is_known: Callable[[str], bool], sides: str = "the name and what it gets"
) -> tuple[str, str]:
    """Split ``NAME=rest``; names may contain ``=``, so the first split that gives a known name counts."""
    splits = [(text[:i], text[i + 1 :]) for i, character in enumerate(text) if character == "="]
    if not splits:
        raise_usage_error(f"{option} {text}: there is no '=' between {sides}")
    return next((split for split in splits if is_known(split[0])), splits[0])


class FileName(str):
    """The path of a file to read on the command line, or a device."""

    def __new__(cls, text: str) -> Self:
        if not text:
            raise argparse.ArgumentTypeError("the name of the file is empty")
        return super().__new__(cls, text)


class OutputFile(FileName):
    """The path of a file that a command writes."""

    ending: ClassVar[str | None] = None
    """The ending that its name must have; None if only the writer of the file knows it."""


def output_with(ending: str = "") -> type[OutputFile]:
    """Return the class of files other than models, whose names have such an ending, or none."""
    return type("OutputFile", (OutputFile,), {"ending": ending})


def _integer(least: int) -> Callable[[str], int]:
    """Return the function that converts the text of an argument that is an integer of at least ``least``."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(readable(f"'{text}' is not an integer")) from None
        if value < least:
            raise argparse.ArgumentTypeError(readable(f"must be at least {least}, got {value}"))
        if value > sys.maxsize:
            raise argparse.ArgumentTypeError(readable(f"must be at most {sys.maxsize}, got {value}"))
        return value

    return convert


def _number(what: str, is_valid: Callable[[float], bool]) -> Callable[[str], float]:
    """Return the function that converts the text of an argument that is such a number."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not is_valid(value):
            raise argparse.ArgumentTypeError(readable(f"'{text}' is not {what}"))
        return value

    return convert


natural, positive, at_least_two = _integer(0), _integer(1), _integer(2)
amount = _number("a finite number of 0 or more", lambda value: 0 <= value < math.inf)
share = _number("a number above 0 and at most 1", lambda value: 0 < value <= 1)
seconds = _number("a finite number of seconds above 0", lambda value: 0 < value < math.inf)


def pattern(text: str) -> str:
    """Convert the text of an argument that is a regular expression."""
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about syntax that a later Python may change
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not a regular expression: {error}")) from None
    return text


def device_property(text: str) -> tuple[str, str]:
    """Convert the text of ``--config``."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        message = f"expected KEY=VALUE, as in INFERENCE_PRECISION_HINT=bf16, got '{text}'"
        raise argparse.ArgumentTypeError(readable(message))
    return key, value
