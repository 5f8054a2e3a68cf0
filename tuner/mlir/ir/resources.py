"""The data of ``dense_resource`` constants, which follow the module of a payload.

A user's file has them as hexadecimal text. MLIR's Python bindings cannot read these data, and parsing them
doubles the memory that they take:

    {-#
      dialect_resources: {
        builtin: {
          torch_tensor_128_torch.float32: "0x04000000C5A3...",
          "a name, quoted": "0x04000000..."
        }
      }
    #-}

Child processes get text that says where in a file each constant is, which they map:

    {-#
      external_resources: { tuner: {
        torch_tensor_128_torch.float32: "64:512:/proc/71/fd/5"
      } }
    #-}
"""

import contextlib
import math
import mmap
import os
import re
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, MachineError, Stage
from tuner.core.numpy_types import DTYPES

SECTION = "\n{-#"  # where the data begin
MAPPED = SECTION + "\nexternal_resources: { tuner: {\n"  # where they begin as places in a file
PLACE = re.compile(r'^("(?:[^"\\]|\\.)*"|[^\s"{}:,]+): "(\d+):(\d+):([^"]+)"', re.MULTILINE)
VALUE = '"0x'  # how the data of a constant begin
NAME = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s"{}:,]+)\s*:\s*$')  # the name in front of the data
# A constant whose data follow the module: 'dense_resource<name>' in it, and 'name: "0x...' after it
RESOURCE = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[^>\s]+)>')
PREFIX = "08000000"  # the alignment of the data, which nobody reads
ALIGNMENT_BYTES = 4  # size of the number in front of the data, which is their alignment
FILE_ALIGNMENT_BYTES = 64  # of a constant in a file, as of arrays in memory
MAGIC = b"constants of a payload, by tuner\n".ljust(FILE_ALIGNMENT_BYTES, b"\0")  # begins a file
Data = bytes | memoryview  # of a constant, row by row; a view has bytes as elements


@dataclass(frozen=True)
class SplitPayload:
    """A payload's MLIR text without the data of its constants, and these data by the constants' names."""

    text: str
    resources: Mapping[str, Data]
    written: str = ""  # the text with the data, where it was split from one

    @property
    def joined(self) -> str:
        """Returns ``text`` followed by the data of the constants that it names, or by their places in a file.

        Data that are not in a file become hexadecimal digits, twice as many bytes.
        """
        return self.written or joined_payload(self.text, self.resources)


class SizedData(Mapping[str, Data]):
    """Data of constants by name, each read or computed when it is asked for; their sizes are known before."""

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Returns the bytes of each constant's data by its name; reads no data."""


class _WrittenData(SizedData):
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

    @property
    def sizes(self) -> dict[str, int]:
        """Returns the bytes of each constant's data by its name."""
        return {name: (end - start) // 2 - ALIGNMENT_BYTES for name, (start, end) in self._places.items()}


@dataclass(frozen=True)
class FilePlace:
    """Where the data of a constant are in a file: the file's path, and bytes from its beginning."""

    path: str
    offset: int
    size: int


class MappedData(SizedData):
    """The data of constants in files, which are mapped when a constant is asked for: no copy is made."""

    def __init__(self, places: Mapping[str, FilePlace]) -> None:
        self.places = places

    def __getitem__(self, name: str) -> memoryview:
        """Returns the data of a constant. Raises CandidateError(BIND) where the file cannot be mapped."""
        place = self.places[name]
        if not place.size:
            return memoryview(b"")
        return self._files[place.path][place.offset : place.offset + place.size]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def sizes(self) -> dict[str, int]:
        """Returns the bytes of each constant's data by its name."""
        return {name: place.size for name, place in self.places.items()}

    @cached_property
    def _files(self) -> dict[str, memoryview]:
        return {path: _mapped(path) for path in {place.path for place in self.places.values()}}


def _mapped(path: str) -> memoryview:
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise CandidateError(Stage.BIND, f"payload: the file of its constants, {path}: {error}") from error
    if content[: len(MAGIC)] != MAGIC:  # a place in an untrusted text names no other file
        raise CandidateError(Stage.BIND, f"payload: {path} is not a file of constants")
    return content


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # as for the writer of a pipe that an untrusted text names


def _mapped_places(section: str) -> dict[str, FilePlace]:
    return {
        name: FilePlace(path, int(offset), int(size)) for name, offset, size, path in PLACE.findall(section)
    }


class ConstantsFile:
    """A file without a name for the data of constants; it lasts as long as this object and its mappings."""

    def __init__(self) -> None:
        """Creates the file in the folder for temporary files. Raises MachineError where that fails."""
        try:
            self._file = tempfile.TemporaryFile(prefix="tuner-constants-")  # noqa: SIM115 - see ``close``
        except OSError as error:
            raise _no_file(error) from error

    @property
    def path(self) -> str:
        """Returns the path by which other processes of the user open the file."""
        return f"/proc/{os.getpid()}/fd/{self._file.fileno()}"

    def close(self) -> None:
        """Closes the file; processes that have mapped it keep it."""
        self._file.close()


def write_constants(path: str, text: str, resources: Mapping[str, Data]) -> MappedData:
    """Writes the data of the constants that ``text`` names into a ``ConstantsFile``, one after the other.

    Raises MachineError where there is no room for them.
    """
    named = set(RESOURCE.findall(text))
    places = {}
    try:
        with Path(path).open("wb") as file:
            file.write(MAGIC)
            for name in filter(named.__contains__, resources):
                data = resources[name]
                file.write(bytes(-file.tell() % FILE_ALIGNMENT_BYTES))
                places[name] = FilePlace(path, file.tell(), len(data))
                file.write(data)
    except OSError as error:
        raise _no_file(error) from error
    return MappedData(places)


def _no_file(error: OSError) -> MachineError:
    return MachineError(
        f"constants: cannot be written to a file in {tempfile.gettempdir()}: {error.strerror or error}",
        "TMPDIR names a folder with room for all weights",
    )


@contextlib.contextmanager
def mapped_payload(payload: SplitPayload) -> Iterator[str]:
    """Context manager: yields the text of a payload for child processes, which map its constants.

    A payload without data, or whose data are in a file, is its own text. The file lasts as long as the
    context. Raises MachineError where the data cannot be written.
    """
    if not payload.resources or isinstance(payload.resources, MappedData):
        yield payload.joined
        return
    file = ConstantsFile()
    try:
        yield joined_payload(payload.text, write_constants(file.path, payload.text, payload.resources))
    finally:
        file.close()


def split_payload(text: str) -> SplitPayload:
    """Splits MLIR text into the module and the data of its constants by name.

    A constant's name keeps its quotes if it has any. Data are read when they are asked for. Raises
    CandidateError(BIND) for data without a name, and at reading for data that are not hexadecimal.
    """
    module = without_data(text)
    if len(module) == len(text):
        return SplitPayload(text, {}, written=text)
    if text.startswith(MAPPED, len(module)):
        return SplitPayload(module, MappedData(_mapped_places(text[len(module) :])), written=text)
    return SplitPayload(module, _WrittenData(text), written=text)


def without_data(text: str) -> str:
    """Returns MLIR text without the data of its constants, which follow the module."""
    start = text.find(SECTION)
    return text if start < 0 else text[:start]


def joined_payload(text: str, resources: Mapping[str, Data]) -> str:
    """Returns MLIR text followed by the data of the constants that it names: undoes ``split_payload``."""
    named = set(RESOURCE.findall(text))
    if isinstance(resources, MappedData):
        places = ",\n".join(
            f'{name}: "{place.offset}:{place.size}:{place.path}"'
            for name, place in resources.places.items()
            if name in named
        )
        return f"{text}{MAPPED}{places}\n}} }}\n#-}}\n" if places else text
    values = ",\n".join(
        f'{name}: {VALUE}{PREFIX}{data.hex()}"' for name, data in resources.items() if name in named
    )
    if values:
        return f"{text}{SECTION}\ndialect_resources: {{ builtin: {{\n{values}\n}} }}\n#-}}\n"
    return text


def resource_sizes(resources: Mapping[str, Data]) -> Mapping[str, int]:
    """Returns the bytes of the data of each constant by its name; reads no data."""
    if isinstance(resources, SizedData):
        return resources.sizes
    return {name: len(data) for name, data in resources.items()}


def constants_bytes(text: str) -> int:
    """Returns the bytes of the data of all constants that follow a module, without reading them."""
    return sum(resource_sizes(split_payload(text).resources).values())


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
    require_data_bytes(len(data), shape, element)
    dtype = DTYPES[element]
    count = math.prod(shape)
    if element == "i1" and len(data) != count:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little")
        return bits.view(dtype).reshape(shape)
    return np.frombuffer(data, dtype).reshape(shape)


def require_data_bytes(size: int, shape: tuple[int, ...], element: str) -> None:
    """Raises CandidateError(BIND) unless ``size`` is the bytes of a constant of this shape and element type.

    Booleans ("i1") may be bytes or bits.
    """
    count = math.prod(shape)
    allowed = count * DTYPES[element].itemsize
    if size == allowed or (element == "i1" and size == -(-count // 8)):
        return
    actual = f"found {size} bytes, allowed {allowed}"
    raise CandidateError(Stage.BIND, f"payload: data of a constant of {shape} x {element}: {actual}")
