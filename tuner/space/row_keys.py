"""Configurations as numbers in mixed radix: choice indices as digits, the last knob least significant."""

import math

import numpy as np
import numpy.typing as npt

from tuner.space.search_space import SearchSpace

Indices = npt.NDArray[np.unsignedinteger]  # (rows, knobs): index of the choice of each knob
Keys = npt.NDArray[np.uint64]  # (words, rows); one word unless the space has 2**63 combinations and more

WORD_LIMIT = 2**63  # combinations that one word can number
DECODED_ROWS = 1 << 17  # decoded at once: they fit in the cache


class RowKeys:
    """Encodes configurations of a search space as integer keys (mixed radix), and decodes keys.

    In ascending order of keys the last knob varies fastest.
    """

    def __init__(self, space: SearchSpace) -> None:
        self.sizes = tuple(len(knob.choices) for knob in space.knobs)
        self._words = _text(self.sizes)
        self._places = {
            knob: (text, math.prod(self.sizes[knob + 1 : stop]))
            for text, (start, stop) in enumerate(self._words)
            for knob in range(start, stop)
        }

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """Returns the narrowest unsigned integer type that holds the choice indices of every knob."""
        largest = max(self.sizes, default=1)
        return np.uint8 if largest <= 2**8 else np.uint16 if largest <= 2**16 else np.uint32

    def root(self) -> Keys:
        """Returns an array with the key of one configuration in which every knob is open."""
        return np.zeros((len(self._words), 1), np.uint64)

    def chosen(self, keys: Keys, knob: int, picks: npt.NDArray[np.integer]) -> Keys:
        """Adds a choice of the knob with index ``knob`` to each key, in place; returns ``keys``.

        ``picks`` has one choice index per key. The knob must be open in all keys.
        """
        text, stride = self._places[knob]
        keys[text] += picks.astype(np.uint64) * np.uint64(stride)
        return keys

    def encode(self, index: Indices) -> Keys:
        """Returns the keys of complete configurations: an array (configurations, knobs) of choice indices."""
        keys = np.zeros((len(self._words), len(index)), np.uint64)
        for knob in range(len(self.sizes)):
            keys = self.chosen(keys, knob, index[:, knob])
        return keys

    def decode(self, keys: Keys) -> Indices:
        """Returns the configurations of keys as an array (configurations, knobs) of choice indices.

        The array is column-major in memory.
        """
        columns = np.empty((len(self.sizes), keys.shape[1]), self.dtype)
        for start in range(0, keys.shape[1], DECODED_ROWS):
            part = slice(start, start + DECODED_ROWS)
            for text, (first, last) in enumerate(self._words):
                rest = keys[text, part]
                for knob in reversed(range(first, last)):
                    quotient = rest // np.uint64(self.sizes[knob])
                    columns[knob, part] = rest - quotient * np.uint64(self.sizes[knob])
                    rest = quotient
        return columns.T


def sort_keys(keys: Keys) -> Keys:
    """Returns the keys in ascending order; keys of one word are sorted in place, others are copied."""
    if len(keys) == 1:
        keys.sort(axis=1)
        return keys
    return keys[:, np.lexsort(keys[::-1])]  # lexsort takes the most significant word last


def _text(sizes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Returns (first knob, end) of each word: as many knobs as one word can number. At least one word."""
    options: list[tuple[int, int]] = []
    start = 0
    for stop in range(1, len(sizes) + 1):
        if math.prod(sizes[start:stop]) >= WORD_LIMIT:
            options.append((start, stop - 1))
            start = stop - 1
    return (*options, (start, len(sizes)))
