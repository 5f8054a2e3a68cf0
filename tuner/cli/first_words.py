"""What a run began with, in words."""

from collections import Counter

from tuner.cli.words import count_text
from tuner.first_point import SEED, SPACE_FILE, WARM_START, FirstPoint

WORDS = {SPACE_FILE: "{} of the space file", SEED: "{} chosen by the machine's limits"}


def first_words(points: tuple[FirstPoint, ...]) -> str:
    """Returns where the first points come from: 'warm start from 512x512x512 (run 3), then 7 of ...'."""
    counts = Counter(point.origin for point in points)
    words = [text.format(counts[origin]) for origin, text in WORDS.items() if counts[origin]]
    sources = tuple(dict.fromkeys(point.source for point in points if point.origin == WARM_START))
    if sources:
        words.insert(0, f"warm start from {', '.join(sources)}: {count_text(counts[WARM_START], 'point')}")
    return ", then ".join(words)
