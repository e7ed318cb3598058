"""``ovir generate``: generate text with a language model, its tokenizer and its detokenizer.

Examples:
  ovir generate FOLDER --prompt 'Once upon a time'
  ovir generate FOLDER --prompt 'Once upon a time' --max-tokens 20 --temperature 0.8 --top-p 0.9 --seed 7
  ovir generate FOLDER --chat --prompt 'Who are you?'
  ovir generate FOLDER --prompt 'Once upon a time' --against openvino:CPU
  ovir generate int4/ --prompt 'Once upon a time' --against f16/ --json

The text goes to stdout as it is generated, everything else to stderr.
Without --temperature, --top-k, --top-p and --min-p, tokens are chosen as generation_config.json of the folder says.
exit status: 1 if --against finds another token at some step
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ovir.cli.options.command import Command, Options
from ovir.cli.options.values import FileName, amount, natural, positive, raise_usage_error, share
from ovir.cli.terminal import output
from ovir.cli.terminal.display import last_line
from ovir.compiling import ENGINES
from ovir.core.tables import Table, columns
from ovir.diagnostics.wording import escaped, plural, readable
from ovir.generation.sampling import GENERATION, MAX_TOKENS

if TYPE_CHECKING:
    from ovir.generation.generate import Generated
    from ovir.generation.token_comparison import TokenComparison


def add_to(command: Command) -> None:
    text = "the folder with openvino_model.xml, openvino_tokenizer.xml and openvino_detokenizer.xml"
    command.argument("folder", "FOLDER", text, FileName)
    command.option("--prompt TEXT", "the text to continue; - reads it from stdin, up to a last line end")
    command.option("--chat", "make the prompt the message of a user in the chat template of the folder")
    command.option("--system TEXT", "with --chat: a message of the system before that of the user")
    command.option("--max-tokens N", f"generate at most N tokens (default: {MAX_TOKENS})", positive)
    command.option("--temperature T", "draw tokens, with logits divided by T; 0 takes the best one", amount)
    command.option("--top-k K", "draw one of the K most probable tokens", positive)
    command.option("--top-p P", "draw one of the fewest tokens that have the probability P together", share)
    command.option("--min-p P", "draw one of the tokens with P times the probability of the best one", share)
    command.option("--repetition-penalty R", "make tokens that were there less probable, if R is above 1", amount)
    command.option("--stop TEXT", "end the text before this one; may be repeated", action="append")
    command.option("--seed N", "seed of the draws (default: 0)", natural)
    command.option(
        "--engine",
        "the engine of the decoder: numpy, or onnxruntime for all layers that ONNX can express (default: numpy)",
        choices=ENGINES,
        default=next(iter(ENGINES)),
    )
    command.option("--threads N", "use at most N threads (default: all cores)", positive)
    command.option(
        "--against SIDE",
        "openvino:DEVICE, or another FOLDER: feed its decoder with the same tokens, and compare the logits",
        FileName,
    )
    command.shared("extension", "config", "json")


def run(options: Options) -> int:
    from ovir.generation.generate import GenerationOptions, generate  # `ovir --help` does not need it

    if options.prompt is None:
        raise_usage_error("--prompt is missing: give the text to continue, or - to read it from stdin")
    prompt = _standard_input() if options.prompt == "-" else options.prompt
    if options.system is not None:
        if not options.chat:
            raise_usage_error("--system needs --chat: only a conversation has a message of the system")
        prompt = [{"role": "system", "content": options.system}, {"role": "user", "content": prompt}]
    stream = None if options.json else _Stream()
    try:
        how = {name: value for name, value in vars(options).items() if name in GenerationOptions.__annotations__}
        how |= {"config": dict(options.config), "on_text": stream}
        generated = generate(options.folder, prompt, engine=options.engine, threads=options.threads, **how)
    finally:
        if stream is not None and stream.has_begun:
            output.say()
    if options.json:
        output.say_json(generated.to_dict())
    else:
        output.print_message(_speed(generated))
        if generated.ignored:
            settings = ", ".join(f"{name} {value}" for name, value in generated.ignored.items())
            output.print_message(readable(f"these settings of {GENERATION} have no effect: {settings}"))
        if generated.comparison is not None:
            _print_comparison(generated.comparison)
    return output.DONE if generated.comparison is None or generated.comparison.first is None else output.WRONG


def _standard_input() -> str:
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError:
        raise_usage_error("--prompt -: stdin is not UTF-8")


class _Stream:
    """Prints pieces of text as they come."""

    def __init__(self) -> None:
        self.has_begun = False

    def __call__(self, piece: str) -> None:
        if not self.has_begun:
            last_line.close()  # progress would overwrite the line of the text
            self.has_begun = True
        output.say_part(_shown(piece) if sys.stdout.isatty() else piece)


def _shown(text: str) -> str:
    """Return a text for a terminal, with characters escaped that it would obey."""
    return "".join(c if c in "\n\t" else escaped(c) for c in text)


def _speed(generated: Generated) -> str:
    tokens = plural(len(generated.prompt_ids), "token")
    what = f"{tokens} of the prompt and the first of the text in {generated.seconds[0]:.3g} s"
    rest = len(generated.ids) - 1
    return f"{what}; then {rest:,} at {generated.tokens_per_second:.3g} tokens/s" if rest else what


def _print_comparison(comparison: TokenComparison) -> None:
    """Print at which step two decoders choose different tokens, and the logits there."""
    precision = "" if comparison.precision is None else f", which computes in {comparison.precision}"
    steps = len(comparison.errors)
    output.say()
    tokens = f"the same token at {comparison.equal} of {plural(steps, 'step')}"
    output.say(readable(f"against {comparison.against}{precision}: {tokens}"))
    output.say(f"largest difference of a logit: {comparison.errors[comparison.worst]:.3g}, at step {comparison.worst}")
    if comparison.precision in ("bf16", "f16"):
        hint = "--config INFERENCE_PRECISION_HINT=f32 compares in f32"
        output.say(f"the device computes in {comparison.precision}; {hint}")
    if (first := comparison.first) is not None:
        output.say()
        rows = [
            (who, item.id, repr(item.text), item.logit, item.other_logit)
            for who, item in (("the first", first.chosen), ("the other", first.other))
        ]
        title = f"the first step with different tokens is {first.step}:"
        heads = columns("chosen by: text; id: counts; token: text; logit of the first: real; of the other: real")
        output.say_table(Table(heads, rows), title=title)
