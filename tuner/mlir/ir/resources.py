"""The data of ``dense_resource`` constants, which follow the module of a payload as hexadecimal text.

MLIR's Python bindings cannot read these data, and parsing them doubles the memory that they take:

    {-#
      dialect_resources: {
        builtin: {
          torch_tensor_128_torch.float32: "0x04000000C5A3...",
          "a name, quoted": "0x04000000..."
        }
      }
    #-}
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import DTYPES

SECTION = "\n{-#"  # where the data begin
VALUE = '"0x'  # how the data of a constant begin
NAME = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s"{}:,]+)\s*:\s*$')  # the name in front of the data
# A constant whose data follow the module: 'dense_resource<name>' in it, and 'name: "0x...' after it
RESOURCE = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[^>\s]+)>')
PREFIX = "08000000"  # the alignment of the data, which nobody reads
ALIGNMENT_BYTES = 4  # size of the number in front of the data, which is their alignment


@dataclass(frozen=True)
class SplitPayload:
    """A payload's MLIR text without the data of its constants, and these data by the constants' names."""

    text: str
    resources: Mapping[str, bytes]


def split_payload(text: str) -> SplitPayload:
    """Splits MLIR text into the module and the data of its constants by name, with quotes of quoted names."""
    module, mark, section = text.partition(SECTION)
    if not mark:
        return SplitPayload(text, {})
    digits = {name: section[start:end] for name, start, end in _places(section)}
    return SplitPayload(module, {name: _content(name, hexadecimal) for name, hexadecimal in digits.items()})


def without_data(text: str) -> str:
    """Returns MLIR text without the data of its constants, which follow the module."""
    return text.partition(SECTION)[0]


def joined_payload(text: str, resources: Mapping[str, bytes]) -> str:
    """Returns MLIR text followed by the data of the constants that it names: undoes ``split_payload``."""
    named = set(RESOURCE.findall(text))
    values = ",\n".join(
        f'{name}: {VALUE}{PREFIX}{data.hex()}"' for name, data in resources.items() if name in named
    )
    if values:
        return f"{text}{SECTION}\ndialect_resources: {{ builtin: {{\n{values}\n}} }}\n#-}}\n"
    return text


def resource_sizes(text: str) -> dict[str, int]:
    """Returns the bytes of the data of each ``dense_resource`` constant in MLIR text, by its name."""
    places = _places(text.partition(SECTION)[2])
    return {name: (end - start) // 2 - ALIGNMENT_BYTES for name, start, end in places}


def _places(section: str) -> Iterator[tuple[str, int, int]]:
    end = 0
    while (quote := section.find(VALUE, end)) >= 0:
        name = NAME.search(section[end:quote])
        start = quote + len(VALUE)
        end = section.find('"', start)
        if name is None or end < 0:
            raise CandidateError(Stage.BIND, "payload: resources after the module: data without a name")
        yield name[1], start, end
        end += 1


def _content(name: str, digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)[ALIGNMENT_BYTES:]
    except ValueError as error:
        line = f"payload: the data of dense_resource<{name}>: found what is not hexadecimal"
        raise CandidateError(Stage.BIND, line) from error


def array_of(data: bytes, shape: tuple[int, ...], element: str) -> np.ndarray:
    """Returns the data of a constant as a read-only array of MLIR type ``element``, such as "bf16".

    ``data`` is row by row; booleans are bytes, or bits from the lowest bit on. Raises CandidateError(BIND) if
    the number of bytes is not that of the shape.
    """
    dtype = DTYPES[element]
    count = int(np.prod(shape, dtype=np.int64))
    if element == "i1" and len(data) == -(-count // 8) != count:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little")
        data = bits.tobytes()
    if len(data) != count * dtype.itemsize:
        actual = f"found {len(data)} bytes, allowed {count * dtype.itemsize}"
        raise CandidateError(Stage.BIND, f"payload: data of a constant of {shape} x {element}: {actual}")
    return np.frombuffer(data, dtype).reshape(shape)
