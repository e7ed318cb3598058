"""Texts in 25 scripts, with emoji, marks, odd spaces and special tokens; some are empty, some very long."""

import random
import unicodedata
from collections.abc import Callable

SCRIPTS = {
    "latin": (0x61, 0x7A), "latin1": (0xC0, 0x24F), "greek": (0x391, 0x3C9), "cyrillic": (0x410, 0x44F),
    "armenian": (0x531, 0x586), "hebrew": (0x5D0, 0x5EA), "arabic": (0x621, 0x64A), "devanagari": (0x904, 0x94D),
    "bengali": (0x985, 0x9CD), "tamil": (0xB85, 0xBCD), "thai": (0xE01, 0xE4E), "tibetan": (0xF40, 0xFBC),
    "georgian": (0x10D0, 0x10FA), "hangul": (0xAC00, 0xB200), "ethiopic": (0x1200, 0x135A), "khmer": (0x1780, 0x17D3),
    "mongolian": (0x1820, 0x1877), "hiragana": (0x3041, 0x3096), "katakana": (0x30A1, 0x30FA), "han": (0x4E00, 0x5200),
    "cherokee": (0x13A0, 0x13F4), "jamo": (0x1100, 0x1175), "gothic": (0x10330, 0x1034A), "math": (0x1D400, 0x1D4FF),
    "fullwidth": (0xFF01, 0xFF9F),
}  # fmt: skip
ENGLISH = [
    *("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "then", "it's", "gone"),
    *("we'll", "don't", "they've", "I'm", "you'd", "information", "science", "of", "language", "model"),
    *("tokenization", "Paris", "London", "2024", "3.14", "100", "thousand", "years", "ago,", "there"),
    *("was;", "a", "house!", "What?", "(yes)", "[no]"),
]
EMOJI = ["😀", "👍🏽", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "❤\ufe0f", "🤷🏿\u200d♀\ufe0f", "1\ufe0f\u20e3"]
SPECIAL = [
    *("<|endoftext|>", "<|im_start|>", "<unk>", "<s>", "</s>", "<0x0A>", "[CLS]"),
    *("[MASK]", "[UNK]", "<pad>", "▁", "##", "Ġ"),
]  # fmt: skip
SPACES = [
    *(" ", "  ", "\t", "\n", "\r\n", "\n\n", "\xa0", "\u3000", "\u200b"),
    *("\u2028", "", "\x0b", "\x85", "\u180e", "\ufeff", "\xad", "\x7f"),
]  # fmt: skip
ODD = [
    *"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¿«»—…。、„°€½²Ⅷ٣९ﬁßİıſẞΣς①㎏Åﷺ\ufffd",
    *("'s", "'RE", " .", "\u1e9b\u0323", "\U0010ffff", "\u0378", "\u0558"),
]  # fmt: skip
MARKS = [
    *("\u0301", "\u0308", "\u0323", "\u05b0", "\u064b", "\u093c"),
    *("\u20dd", "\u3099", "\ufe0f", "\u0345", "\u1100\u1161\u11a8"),
]  # fmt: skip


def _words(seed: int) -> dict[str, list[str]]:
    draw = random.Random(seed)
    return {
        name: ["".join(chr(draw.randint(*ends)) for _ in range(draw.randint(1, 9))) for _ in range(60)]
        for name, ends in SCRIPTS.items()
    }


WORDS = _words(1)


def corpus(count: int = 2000) -> list[str]:
    """Return the texts that tokenizers are made from."""
    draw = random.Random(2)
    return [
        " ".join(draw.choice(WORDS[script] if draw.random() < 0.4 else ENGLISH) for _ in range(draw.randint(3, 20)))
        for script in (draw.choice(list(WORDS)) for _ in range(count))
    ]


def texts(count: int, seed: int = 3) -> list[str]:
    """Return texts to tokenize."""
    draw = random.Random(seed)
    return [_text(draw) for _ in range(count)]


def _text(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.03:
        return ""
    if kind < 0.05:
        return draw.choice(SPACES) * draw.randint(1, 5)
    if kind < 0.1:
        planes = [(1, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]
        return "".join(chr(draw.randint(*draw.choice(planes))) for _ in range(draw.randint(1, 30)))
    parts = []
    script = draw.choice(list(WORDS))
    for _ in range(draw.randint(1, 12) if kind < 0.97 else draw.randint(50, 400)):
        if draw.random() < 0.1:
            script = draw.choice(list(WORDS))
        space = draw.choice(SPACES) if draw.random() < 0.2 else " "
        parts += [_word(draw, script), space if draw.random() < 0.9 else ""]
    return "".join(parts if draw.random() < 0.2 else parts[:-1])


def _word(draw: random.Random, script: str) -> str:
    makers: list[tuple[int, Callable[[], str]]] = [
        (35, lambda: draw.choice(WORDS[script])),
        (15, lambda: "".join(chr(draw.randint(*SCRIPTS[script])) for _ in range(draw.randint(1, 10)))),
        (20, lambda: draw.choice(ENGLISH)),
        (5, lambda: draw.choice(EMOJI)),
        (7, lambda: draw.choice(ODD) * draw.randint(1, 3)),
        (4, lambda: draw.choice(ENGLISH) + draw.choice(MARKS) * draw.randint(1, 3)),
        (4, lambda: draw.choice(SPECIAL)),
        (4, lambda: str(draw.randint(0, 10 ** draw.randint(1, 8)))),
        (2, lambda: unicodedata.normalize("NFD", draw.choice(WORDS["latin1"]))),
        (4, lambda: draw.choice(ENGLISH).upper()),
    ]
    (maker,) = draw.choices([make for _, make in makers], [weight for weight, _ in makers])
    return maker()
