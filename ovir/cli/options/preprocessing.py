"""The options of ``ovir edit`` that let a model prepare its inputs itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ovir.cli.options.command import Command, Group
from ovir.cli.options.model import split_input
from ovir.cli.options.values import raise_usage_error
from ovir.model import Model

_TYPES = "u8, f16, ..."


class Option(NamedTuple):
    """An option, with the keyword of ``Model.preprocess`` that gets its value."""

    option: str
    keyword: str
    metavar: str
    help: str


OPTIONS = (
    Option("--input-type", "element_type", "[NAME=]TYPE", f"the element type that is fed: {_TYPES}; it is converted"),
    Option("--input-layout", "layout", "[NAME=]NHWC", "the layout that is fed; it is transposed"),
    Option(
        "--model-layout",
        "model_layout",
        "[NAME=]NCHW",
        "the layout that the model takes (default: what the file records, or NCHW for 4 axes)",
    ),
    Option(
        "--resize",
        "resize",
        "[NAME=]MODE[:HxW]",
        "take images of any size, or of HxW, and resize them: linear, nearest, cubic, bilinear_pillow, bicubic_pillow",
    ),
    Option("--mean", "mean", "[NAME=]M[,M,M]", "subtract a number, or one for each channel"),
    Option("--scale", "scale", "[NAME=]S[,S,S]", "divide by a number, or by one for each channel"),
)


class PreprocessingOptions(Group):
    """The options, each of which may be repeated for several inputs."""

    resize: Sequence[str]
    reverse_channels: bool

    def add_to(self, command: Command) -> None:
        group = command.parser.add_argument_group(
            "preprocessing that becomes part of the model",
            "It comes after the other edits; NAME may be omitted if there is one input.",
        )
        for item in OPTIONS:
            command.option(f"{item.option} {item.metavar}", item.help, group=group, repeated=True)
        help_text = "exchange RGB and BGR, before mean and scale, for the inputs that the other options name"
        command.option("--reverse-channels", help_text, group=group)

    def apply(self, model: Model) -> list[tuple[str, str]]:
        """Apply the options; return the name of each input, and its changes in words."""
        wanted: dict[int, dict[str, Any]] = {}
        for item in OPTIONS:
            for text in getattr(self, item.option.removeprefix("--").replace("-", "_")):
                index, value = split_input(model, item.option, text)
                keywords = wanted.setdefault(index, {})
                if item.keyword in keywords:
                    raise_usage_error(f"{item.option} {text}: input '{model.inputs[index].any_name}' has it twice")
                keywords.update(_values(item, value, text))
        if self.reverse_channels:
            if not wanted and len(model.inputs) != 1:
                raise_usage_error("--reverse-channels: say for which input, by another option such as --input-layout")
            for keywords in wanted.values() if wanted else [wanted.setdefault(0, {})]:
                keywords["reverse_channels"] = True
        found = []
        for index, keywords in wanted.items():
            before = str(model.inputs[index].type)
            port = model.preprocess(index, **keywords)
            steps = ", ".join(f"{name}={_text(value)}" for name, value in keywords.items())
            found.append((port.any_name, f"input '{port.any_name}': {before} -> {port.type} ({steps})"))
        return found


def _values(item: Option, value: str, text: str) -> dict[str, Any]:
    """Return the keywords of ``Model.preprocess`` for one option."""
    if item.keyword in ("mean", "scale"):
        try:
            numbers = [float(number) for number in value.split(",")]
        except ValueError:
            raise_usage_error(f"{item.option} {text}: expected numbers, such as 123.7,116.3,103.5")
        return {item.keyword: numbers[0] if len(numbers) == 1 else numbers}
    if item.keyword == "resize":
        mode, colon, size = value.partition(":")
        sides = size.lower().split("x")
        if colon and (len(sides) != 2 or not all(side.isdecimal() and int(side) for side in sides)):
            raise_usage_error(f"{item.option} {text}: expected a height and a width, as linear:480x640")
        return {"resize": mode} | ({"size": [int(side) for side in sides]} if colon else {})
    return {item.keyword: value}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
