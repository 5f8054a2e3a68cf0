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
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import DTYPES

SECTION = "\n{-#"  # where the data begin
VALUE = '"0x'  # how the data of a constant begin
NAME = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s"{}:,]+)\s*:\s*$')  # the name in front of the data
# A constant whose data follow the module: 'dense_resource<name>' in it, and 'name: "0x...' after it
RESOURCE = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[^>\s]+)>')
PREFIX = "08000000"  # the alignment of the data, which nobody reads
ALIGNMENT_BYTES = 4  # size of the number in front of the data, which is their alignment
Data = bytes | memoryview  # of a constant, row by row; a view has bytes as elements


@dataclass(frozen=True)
class SplitPayload:
    """A payload's MLIR text without the data of its constants, and these data by the constants' names."""

    text: str
    resources: Mapping[str, Data]
    written: str = ""  # the text with the data, where it was split from one

    @property
    def joined(self) -> str:
        """Returns ``text`` followed by the data of the constants that it names, as hexadecimal digits.

        The digits take twice as many bytes as the data.
        """
        return self.written or joined_payload(self.text, self.resources)


class _WrittenData(Mapping[str, bytes]):
    """The data of the constants that follow a module's text, each read from its digits when it is asked for.

    So data are not in memory as text and as bytes: weights are packed one after the other.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = {name: (start, end) for name, start, end in _places(text)}

    def __getitem__(self, name: str) -> bytes:
        """Returns the data of a constant. Raises CandidateError(BIND) for what is not hexadecimal."""
        start, end = self._places[name]
        try:
            return bytes.fromhex(self._text[start + 2 * ALIGNMENT_BYTES : end])
        except ValueError as error:
            line = f"payload: the data of dense_resource<{name}>: found what is not hexadecimal"
            raise CandidateError(Stage.BIND, line) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def split_payload(text: str) -> SplitPayload:
    """Splits MLIR text into the module and the data of its constants by name.

    A constant's name keeps its quotes if it has any. Data are read when they are asked for. Raises
    CandidateError(BIND) for data without a name, and at reading for data that are not hexadecimal.
    """
    module = without_data(text)
    if len(module) == len(text):
        return SplitPayload(text, {}, written=text)
    return SplitPayload(module, _WrittenData(text), written=text)


def without_data(text: str) -> str:
    """Returns MLIR text without the data of its constants, which follow the module."""
    start = text.find(SECTION)
    return text if start < 0 else text[:start]


def joined_payload(text: str, resources: Mapping[str, Data]) -> str:
    """Returns MLIR text followed by the data of the constants that it names: undoes ``split_payload``."""
    named = set(RESOURCE.findall(text))
    values = ",\n".join(
        f'{name}: {VALUE}{PREFIX}{data.hex()}"' for name, data in resources.items() if name in named
    )
    if values:
        return f"{text}{SECTION}\ndialect_resources: {{ builtin: {{\n{values}\n}} }}\n#-}}\n"
    return text


def resource_sizes(text: str) -> dict[str, int]:
    """Returns the bytes of the data of each ``dense_resource`` constant in MLIR text, by its name.

    Raises CandidateError(BIND) for data without a name.
    """
    return {name: (end - start) // 2 - ALIGNMENT_BYTES for name, start, end in _places(text)}


def _places(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields the name of each constant with data in MLIR text, and where its digits begin and end."""
    end = text.find(SECTION)
    if end < 0:
        return
    end += len(SECTION)
    while (quote := text.find(VALUE, end)) >= 0:
        name = NAME.search(text[end:quote])
        start = quote + len(VALUE)
        end = text.find('"', start)
        if name is None or end < 0:
            raise CandidateError(Stage.BIND, "payload: resources after the module: data without a name")
        yield name[1], start, end
        end += 1


def array_of(data: Data, shape: tuple[int, ...], element: str) -> npt.NDArray[Any]:
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
