"""A command with its options: it says which groups of options it needs, and gets objects that own their values."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from ovir.cli.options.targets import refuse_overwriting
from ovir.cli.options.values import FileName, amount, device_property, output_with, raise_usage_error, seconds
from ovir.cli.terminal.display import terminal_width
from ovir.diagnostics.errors import InputError

GROUPS = ("model", "inputs", "many inputs", "comparison", "engine", "checks", "fixes", "outputs")
"""The titles under which help lists the options that many commands have, in this order."""


class Values:
    """Owns the values of options as attributes: that of ``--top-k`` is ``top_k``."""

    given: Container[str] = ()
    """The options of the whole command line, such as ``--top-k``, that have another value than by default."""

    def refuse(self, reason: str, *options: str) -> None:
        """Raise a usage error, which names the first of the options that is given; if none is, do nothing."""
        if (option := next(filter(self.given.__contains__, options), None)) is not None:
            raise_usage_error(f"{option} {reason}")


class Group(Values):
    """Options that belong together, and their meaning."""

    def add_to(self, command: Command) -> None:
        """Add the options to a command."""
        raise NotImplementedError


G = TypeVar("G", bound=Group)


class Options(Values):
    """The values of the options that a command has itself, and its groups of options by their class."""

    command_line: Sequence[str]
    """What the user has entered, from ``ovir`` on."""
    refuse_overwriting: Callable[..., None]
    """Raises a usage error for a file that the command cannot write, or that it reads: one that its options name, or an
    argument of the call."""

    def __init__(self) -> None:
        self.groups: dict[type[Group], Group] = {}

    def __getitem__(self, kind: type[G]) -> G:
        group = self.groups[kind]
        assert isinstance(group, kind)
        return group

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Command:
    """The parser of a command, to which its module adds options."""

    error_status: int | None = None
    """The exit status of all errors, if it must not be the usual one."""
    saved_beside: Sequence[str] = ()
    """The endings of what the command writes beside the .xml of a model."""
    may_replace: str | None = None
    """The argument whose file the command may write anew."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser
        for title in GROUPS:
            parser.add_argument_group(title)  # help shows those that get options
        self._options = Options()
        self._owner: Values = self._options
        self._owners: dict[str, Values] = {}

    def add(self, group: Group) -> None:
        """Add the options of a group, which owns their values."""
        self._options.groups[type(group)] = group
        self._owner = group
        group.add_to(self)
        self._owner = self._options

    def argument(self, name: str, metavar: str, help: str, type: Callable[[str], Any] = str, **more: Any) -> None:
        """Add an argument that is no option; the keywords are those of argparse."""
        self._add(self.parser, name, metavar=metavar, help=help, type=type, **more)

    def option(
        self,
        option: str,
        help: str,
        type: Callable[[str], Any] | None = None,
        *,
        group: Any = None,
        repeated: bool = False,
        **more: Any,
    ) -> None:
        """Add an option as its user writes it, such as ``-o, --output FILE``; without a value, or choices, it is a
        switch.

        ``type`` converts its text, and with ``repeated`` its value is a list. The other keywords are those of argparse.
        """
        spelled = re.fullmatch(r"(-[^ ,]+(?:, -[^ ,]+)*)(?: (.+))?", option)
        assert spelled is not None, option
        if repeated:
            more |= {"action": "append", "default": []}
        if spelled[2] is not None:
            more["metavar"] = spelled[2]
        elif "choices" not in more:
            more.setdefault("action", "store_true")
        if type is not None:
            more["type"] = type
        self._add(group or self.parser, *spelled[1].split(", "), help=help, **more)

    def _add(self, group: Any, *names: str, **more: Any) -> None:
        self._owners[group.add_argument(*names, **more).dest] = self._owner

    def under(self, title: str | None, *, exclusive: bool = False) -> Callable[..., None]:
        """Return ``option`` for one of the titles of ``GROUPS``; ``exclusive`` options exclude each other."""
        group: Any = self.parser
        if title is not None:
            group = next(item for item in self.parser._action_groups if item.title == title)
        return partial(self.option, group=group.add_mutually_exclusive_group() if exclusive else group)

    def shared(self, *names: str) -> None:
        """Add options of ``SHARED``, in the order that they have there."""
        for name in sorted(names, key=list(SHARED).index):
            group, *option, repeated = SHARED[name]
            self.under(group)(*option, repeated=repeated)

    def options(self, arguments: argparse.Namespace, command_line: Sequence[str]) -> Options:
        """Return the options, which own the values of a command line from now on."""
        options, values = self._options, {name: getattr(arguments, name) for name in self._owners}
        changed = {name for name in self._owners if values[name] != self.parser.get_default(name)}
        given = {text for action in self.parser._actions if action.dest in changed for text in action.option_strings}
        for name, owner in self._owners.items():
            setattr(owner, name, values[name])
        for group in (options, *options.groups.values()):
            group.given = given
        options.command_line = command_line
        replaceable = None if self.may_replace is None else values[self.may_replace]
        options.refuse_overwriting = partial(
            refuse_overwriting, values, saved_beside=self.saved_beside, replaceable=replaceable
        )
        return options

    def spelled(self, name: str) -> str:
        """Return the option whose value has a name in Python; the name itself if there is none."""
        actions = (action for action in self.parser._actions if action.dest == name)
        return next((text for action in actions for text in action.option_strings if text.startswith("--")), name)


class Shared(NamedTuple):
    """An option that many commands have, under one title and with one meaning; see ``Command.option``."""

    title: str
    option: str
    help: str
    type: Callable[[str], Any] | None = None
    repeated: bool = False


_SHARED = (
    Shared("model", "--weights FILE", "the weights, if they are not the .bin next to the model", FileName),
    Shared("model", "--no-weights", "read only the topology; no .bin is needed"),
    Shared(
        "model",
        "--extension MODULE.py",
        "run this Python file first: it registers operations with `ovir.register`; may be repeated",
        FileName,
        repeated=True,
    ),
    Shared(
        "model",
        "--shape NAME=1,3,?,2..5",
        "give an input another shape (NAME= may be omitted if the model has one input), or in infer and show a "
        "state; may be repeated",
        repeated=True,
    ),
    Shared("model", "--adapt", "let constants that hold an old size, such as targets of Reshape, follow --shape"),
    Shared("model", "--legacy-io", "read an IR of version 10 as OpenVINO does: inputs and outputs become f32 or i32"),
    Shared(
        "many inputs",
        "--inputs FOLDER",
        "many inputs: a folder of .npz, .npy or image files, a pattern in quotes ('data/**/*.jpg'), or a list.txt "
        "with a file in each line, or with a text if the model takes strings",
        FileName,
    ),
    Shared("comparison", "--config KEY=VALUE", "a property of the device; may be repeated", device_property, True),
    Shared("comparison", "--timeout S", "the most seconds that a run of the device takes", seconds),
    Shared("comparison", "--rtol X", "the relative tolerance (default: by element type)", amount),
    Shared("comparison", "--atol X", "the absolute tolerance, also of integers", amount),
    Shared("comparison", "--metric NAME=LIMIT", "a limit in place of tolerances, such as cosine=0.999 or sqnr_db=40"),
    Shared("outputs", "--json", "print JSON instead of a table"),
    Shared("outputs", "--html FILE.html", "also write a report for a browser, in one file", output_with(".html")),
)
SHARED = {shared.option.split()[0].removeprefix("--"): shared for shared in _SHARED}
"""By name, in the order of help."""


# --------------------------------------------------------------------------- the parser


def add_command(commands: Any, name: str, module: ModuleType) -> None:
    """Add a command with its options; the docstring of its module is its help: what it does, and then examples."""
    summary, _, examples = (module.__doc__ or "").partition("\n\n")
    summary = " ".join(summary.split()).removeprefix(f"``ovir {name}``: ").removesuffix(".")
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[:1].upper() + summary[1:] + ".",
        epilog=examples.replace("Examples:", "examples:", 1),
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    command = Command(parser)
    parser.set_defaults(declared=command, run=module.run)
    module.add_to(command)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse creates a formatter for each argument and would import shutil for it.

    Examples that are too long continue in a second line, as a shell takes it.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width() - 2)

    def _format_usage(self, *arguments: Any) -> str:
        """Wrap what argparse keeps in one line: options that exclude each other."""
        lines = super()._format_usage(*arguments).split("\n")
        return "\n".join(part for line in lines for part in _narrow(line, self._width))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(line for part in _blocks(text) for line in _fitting(part, width)).rstrip()


def _blocks(text: str) -> Iterator[str]:
    """Yield each example, which begins with spaces, and each paragraph as one line."""
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if any(line.startswith(" ") for line in lines):
            yield from lines
        else:
            yield " ".join(lines)
        yield ""


def _narrow(line: str, width: int) -> list[str]:
    """Return a line of the usage in lines of a width, which end behind a ``|``."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    first, *others = line.strip().split(" | ")
    lines = [indent + first]
    for part in others:
        lines[-1] += " |"
        if len(f"{lines[-1]} {part} |") <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{indent} {part}")
    return lines


def _fitting(text: str, width: int) -> list[str]:
    """Return an example or a paragraph in lines of a width; the comment of a long example stands before it."""
    if len(text) <= width:
        return [text]
    from textwrap import wrap  # only help needs it

    if not text.startswith(" "):
        return wrap(text, width, break_on_hyphens=False, break_long_words=False)
    example, _, comment = text.strip().partition("  ")
    words = re.split(r" (?=-)", example)  # an option keeps its value
    lines = [f"  {words[0]}"]
    for word in words[1:]:
        if len(f"{lines[-1]} {word} \\") <= width:
            lines[-1] += f" {word}"
        else:
            lines[-1] += " \\"
            lines.append(f"      {word}")
    return [*([f"  # {comment.strip()}"] if comment else []), *lines]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one message with a code, as all other errors are."""

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)  # argparse is silent about a full disk

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` lists what it takes"
        given = message.removeprefix("argument ").partition(": expected ")[0].split("/")[0]
        action = self._option_string_actions.get(given)
        if action is not None and isinstance(action.metavar, str) and action.help:
            hint = f"{given} {action.metavar}: {action.help}"
        raise InputError.usage(message, hint=hint)
