"""The page docs/reference/commands.md, made from the parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from textwrap import dedent

from ovir.cli.main import JOBS, parser
from ovir.cli.options.command import GROUPS

_HEAD = """\
---
search:
  boost: 20
---

# Commands

Every command with all of its arguments, as `ovir COMMAND --help` prints them.
[Using the command line](../command-line.md) explains those that need more than a line.

An argument in brackets may be left out, and one with `...` may be given several times. Options may stand
before or behind the files, which stand together. Unless its section says otherwise, the exit status of a command is 0
if nothing is wrong, 1 if the model or its data is at fault, and 2 for wrong usage or a file that cannot be read at all.
"""


def page() -> str:
    """Return the page in Markdown: a section for each command."""
    subparsers = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    summaries = {action.dest: action.help or "" for action in subparsers._choices_actions}
    sections = [_HEAD]
    for job, names in JOBS.items():
        rows = [(f"[`ovir {name}`](#ovir-{name})", _text(summaries[name])) for name in names]
        sections += [f"{job.capitalize()}:\n", _table("command", rows)]
    for name, command in subparsers.choices.items():
        sections += _section(name, command)
    return "\n".join(sections)


def _section(name: str, command: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the blocks of the section of a command, each of which ends with a line break."""
    positional = [_positional(action) for action in command._get_positional_actions()]
    yield f"## ovir {name}\n"
    yield f"{_text(command.description or '')}\n"
    yield f"```text\n{' '.join(['ovir', name, *positional, '[OPTION ...]'])}\n```\n"
    for group in command._action_groups:
        actions = [action for action in group._group_actions if action.dest != "help"]
        title = (group.title or "").partition(",")
        if actions:
            if title[2] or title[0] in GROUPS:
                yield f"{title[0].capitalize()}{title[1]}{title[2]}:\n"
            kind = "option" if title[0] in GROUPS else title[0].removesuffix("s").removeprefix("positional ")
            yield _table(kind, [_row(action) for action in actions])
    for exclusive in command._mutually_exclusive_groups:
        options = [f"`{action.option_strings[0]}`" for action in exclusive._group_actions]
        yield f"{', '.join(options[:-1])} and {options[-1]} exclude each other.\n"
    yield from _epilog(command.epilog or "")


def _epilog(text: str) -> Iterator[str]:
    """Yield the examples, and then the other paragraphs as sentences."""
    lines = text.removeprefix("examples:\n").splitlines()
    if examples := [line for line in lines if line.startswith("  ")]:
        yield "```text\n" + dedent("\n".join(examples)) + "\n```\n"
    others = "\n".join(line for line in lines if not line.startswith("  "))
    for paragraph in filter(None, (part.strip() for part in others.split("\n\n"))):
        words = _text(" ".join(paragraph.split()))
        yield f"{words[0].upper()}{words[1:].removesuffix('.')}.\n"


def _positional(action: argparse.Action) -> str:
    """Return an argument as the usage shows it."""
    name = str(action.metavar or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _row(action: argparse.Action) -> tuple[str, str]:
    """Return an argument with its value, and what it means."""
    value = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.metavar
    names = [f"{name} {value}" if value and action.nargs != 0 else name for name in action.option_strings]
    return ", ".join(f"`{name}`" for name in names or [_positional(action)]), _text(action.help or "")


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {title} | meaning |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Return a text of the parser as Markdown: options, placeholders and quoted texts are code."""
    code = r"(`[^`]*`|'\S+'|(?<![\w-])--[a-z][\w-]*|[A-Z]+=(?:\S*[^\s,;.)])?)"
    parts = re.split(code, text.replace("%%", "%"))  # each odd one is code
    parts[1::2] = [f"`{part.strip('`')}`" for part in parts[1::2]]
    parts[::2] = [re.sub(r"([<*])", r"\\\1", part) for part in parts[::2]]
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](../\1)", "".join(parts)).replace("|", "\\|")
