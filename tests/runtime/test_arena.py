"""The arena gives out the lowest stretch that is free and long enough, and gets whole stretches back."""

import random

from ovir.runtime.arena import Arena, Span

LINE, CHUNK = 64, 1 << 19


def test_the_lowest_stretch_is_used_first() -> None:
    rng, arena = random.Random(0), Arena()
    lines_in_use: list[bytearray] = []
    taken: list[Span] = []
    for _ in range(600):
        if rng.random() < 0.45 and taken:
            chunk, start, stop = taken.pop(rng.randrange(len(taken)))
            arena.give(Span(chunk, start, stop))
            lines_in_use[chunk][start // LINE : stop // LINE] = bytes((stop - start) // LINE)
            continue
        size = rng.choice((0, 1, 63, 64, 65, rng.randrange(CHUNK // 2), CHUNK, CHUNK + 1))
        lines = max(-(-size // LINE), 1)
        free = ((i, used.find(bytes(lines))) for i, used in enumerate(lines_in_use))
        chunk, first = next((place for place in free if place[1] >= 0), (len(lines_in_use), 0))
        if chunk == len(lines_in_use):
            lines_in_use.append(bytearray(max(lines, CHUNK // LINE)))
        lines_in_use[chunk][first : first + lines] = b"\1" * lines
        taken.append(arena.take(size))
        assert taken[-1] == (chunk, first * LINE, (first + lines) * LINE)
        memory = arena.bytes(taken[-1], size)
        assert (memory.size, memory.ctypes.data % LINE) == (size, 0)
        assert arena.size == sum(map(len, lines_in_use)) * LINE
