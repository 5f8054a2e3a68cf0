"""What schedules need to know of a group of operations, as attributes of its function, read from the text.

``tuner.mlir.group_form`` writes the attributes when it makes a group's canonical text. Here they are read
without MLIR, so that constraints of the search space and templates can use them:

    func.func @group(...) attributes {tuner.bytes = 790528 : i64, tuner.contractions = 1 : i64,
                                      tuner.copy = 0 : i64, tuner.loops = array<i64: 128, 1024>,
                                      tuner.transposed = 0 : i64, tuner.weights = 1 : i64}

A convolution also has ``tuner.dimensions = "nfHW"``, what the loops of its last operation go through, and
``tuner.channels = 64 : i64``, over which it sums; its step along a row is read from the convolution itself.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

CHANNELS, DIMENSIONS = OF_CONVOLUTIONS = ("tuner.channels", "tuner.dimensions")
HASH_DIGITS = 12  # of a text's SHA-256 in the key of a problem
BYTES, CONTRACTIONS, COPY, LOOPS, TRANSPOSED, WEIGHTS = ATTRIBUTES = (
    *("tuner.bytes", "tuner.contractions", "tuner.copy"),
    *("tuner.loops", "tuner.transposed", "tuner.weights"),
)


@dataclass(frozen=True)
class GroupFacts:
    """Sizes and kinds of what a group of operations computes, as far as schedules depend on them."""

    loops: tuple[int, ...]  # extents of the iteration space of the last operation, the root
    contractions: int  # matrix products: 0, 1, or 2: of one A, or of an attention
    weights: int  # contractions whose B is a weight
    transposed: (
        int  # 1 + the loop along which elements of an operand are adjacent, if it is not the last; else 0
    )
    copy: int  # 1 where nothing is computed, elements are only copied; else 0
    bytes: int  # of all arguments
    # Of a convolution: a letter for each loop: n images, g groups, f filters (c channels of a depthwise one),
    # H W rows and columns of pixels.
    dimensions: str = ""
    channels: int = 0  # of a convolution: that are summed up; 1 of a depthwise one
    stride: int = 0  # of a convolution: pixels of the input from one pixel of a row of the output to the next

    def variables(self) -> tuple[tuple[str, int | str], ...]:
        """Returns the (name, value) pairs that constraints and templates may use.

        ``loops``: the number of loops of the root; ``inner_rows``: the extent of the loop before the last, 1
        for a single loop. ``dimensions``, ``channels``, ``stride``: of a convolution, else "" and 0.
        """
        return (
            ("loops", len(self.loops)),
            ("inner_rows", self.loops[-2] if len(self.loops) > 1 else 1),
            ("contractions", self.contractions),
            ("weights", self.weights),
            ("transposed", self.transposed),
            ("copy", self.copy),
            ("dimensions", self.dimensions),
            ("channels", self.channels),
            ("stride", self.stride),
        )


@lru_cache(maxsize=256)
def facts_of(text: str) -> GroupFacts:
    """Returns what the attributes of a group's function say; without attributes, no loops and zeros."""
    found = re.search(rf"{re.escape(LOOPS)} = array<i64(?:: ([0-9, ]+))?>", text)
    loops = tuple(int(each) for each in (found[1] or "").split(",") if each) if found else ()
    letters = re.search(rf'{re.escape(DIMENSIONS)} = "(\w*)"', text)
    return GroupFacts(
        loops=loops,
        contractions=_number(text, CONTRACTIONS),
        weights=_number(text, WEIGHTS),
        transposed=_number(text, TRANSPOSED),
        copy=_number(text, COPY),
        bytes=_number(text, BYTES),
        dimensions=letters[1] if letters else "",
        channels=_number(text, CHANNELS),
        stride=_stride(text) if letters else 0,
    )


@lru_cache(maxsize=256)
def text_hash(text: str) -> str:
    """Returns the first digits of the SHA-256 of a text, by which a group is named."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def _stride(text: str) -> int:
    """Returns the last of the strides of the convolution in a text: ``strides = dense<[2, 1]>``."""
    found = re.search(r"strides = dense<\[?([0-9, ]+)\]?>", text)
    return int(found[1].split(",")[-1]) if found else 1


def _number(text: str, name: str) -> int:
    found = re.search(rf"{re.escape(name)} = (\d+)", text)
    return int(found[1]) if found else 0
