"""An exported program: a folder that runs where there is numpy, without MLIR and without PyTorch.

    program.json    types, memory, instruction sets, compiler, how each fusion is computed, hashes
    code.o          machine code: an object file for x86-64
    weights.npy     packed weights, as bytes, each at a multiple of 64 bytes

Weights are written one after the other, and mapped into memory: processes that load a program share them.
Loading reads each once, for its checksum. Another export replaces the files and leaves loaded programs as
they are; a file that is overwritten in place changes the programs that have loaded it. A program may read
equal weights from the file of another (``SharedFile``), as the step of a language model from its prompt's.

The code takes a frame of pointers (``tuner.models.run.fused_code``). It never ends the process: an index
out of range is a text in the frame. A program of a dynamic size is a folder, too:
``tuner.models.run.exported_sizes``. C programs call both by ``tuner.models.c_library``.
"""

import hashlib
import json
import mmap
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, UsageError
from tuner.core.serialization import decode, encode, known_part
from tuner.core.text_files import similar_file_hint, unreadable
from tuner.models.run.fused_code import FusedCode, FusedImage, require_processor
from tuner.models.run.program_weights import ALIGNMENT_BYTES, aligned_size, checksum
from tuner.version import __version__

FORMAT = 8  # of program.json; 8: which arguments a call changes, a checksum of the weights that is fast
DOCUMENT = "program.json"
CODE = "code.o"
WEIGHTS = "weights.npy"
SHARED = "shared_weights"  # key of a SharedFile
OWN = -1
HASH = "sha256"  # key of the hash of all other keys
OWN_FILE = re.compile(r"program\.json|weights\.npy|code(-[0-9]+)?\.o")
PARTIAL = ".part"  # ends the name of a file that is being written

Array = npt.NDArray[Any]
Content = TypeVar("Content")


@dataclass(frozen=True)
class SharedFile:
    """Weights of a program that are in the file of another exported program."""

    folder: str  # of that program, from the folder of this one, with slashes
    checksum: str  # of its weights
    numbers: tuple[int, ...]  # of each weight: index of an equal one of that program, or OWN


def save_program(
    code: FusedCode, weights: Sequence[Array], folder: Path, weights_of: Path | None = None
) -> None:
    """Writes a program into a folder, which is created if needed; program.json is written last.

    ``weights_of``: a folder with another program of static sizes; weights that are equal to one of its are
    not written again. Raises UsageError for a folder that has other files, or that cannot be written, and
    for ``weights_of`` without such a program, or with one that shares another's weights itself.
    """
    document = {"format": FORMAT, **encode(code)}
    if weights_of is not None:
        shared = _shared_file(weights, folder, weights_of)
        document[SHARED] = encode(shared)
        weights = [weight for weight, number in zip(weights, shared.numbers, strict=True) if number == OWN]
    write_folder(folder, document, {CODE: code.object_code}, weights)


def _shared_file(weights: Sequence[Array], folder: Path, other: Path) -> SharedFile:
    if other.resolve() == folder.resolve():
        raise UsageError(f"weights_of: found the folder of the export, {folder}", "name another program's")
    document = read_document(other, (FORMAT,))
    if SHARED in document:
        holder = other / decoded(_Sharing, document, other).shared_weights.folder
        raise UsageError(f"weights_of: the program in {other} shares weights itself", f"name {holder}")
    known: dict[tuple[int, int], list[int]] = {}
    theirs = _all_weights(other, document)
    for number, weight in enumerate(theirs):
        known.setdefault((weight.size, checksum(weight)), []).append(number)
    numbers = []
    for weight in weights:
        alike = known.get((weight.size, checksum(weight)), ())
        equal = (number for number in alike if np.array_equal(weight, theirs[number]))
        numbers.append(next(equal, OWN))
    relative = Path(os.path.relpath(other.resolve(), folder.resolve())).as_posix()
    return SharedFile(relative, str(document["files"][WEIGHTS]), tuple(numbers))


def _all_weights(folder: Path, document: Mapping[str, Any]) -> tuple[Array, ...]:
    """Returns the weights of a program that has them all in its own file."""
    return read_weights(folder, document, decoded(FusedCode, document, folder).weight_bytes)


def write_folder(
    folder: Path, document: Mapping[str, Any], codes: Mapping[str, bytes], weights: Sequence[Array]
) -> None:
    """Writes machine code, by the name of its file, and packed weights into a folder, program.json last.

    ``document``: content of program.json. Files of an earlier export are replaced or removed. Raises
    UsageError for a folder that has other files, or that cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # an export that was killed leaves a part of a file, which is overwritten
        present = sorted({file.name.removesuffix(PARTIAL) for file in folder.iterdir()})
        others = [name for name in present if not OWN_FILE.fullmatch(name)]
        if others:
            raise UsageError(f"{folder}: has other files, such as {others[0]}", "name a new folder")
        (folder / DOCUMENT).unlink(missing_ok=True)
        hashes = {}
        for name, code in codes.items():
            _write(folder / name, lambda file, code=code: file.write_bytes(code))  # type: ignore[misc]
            hashes[name] = hashlib.sha256(code).hexdigest()
        _write(folder / WEIGHTS, lambda file: _write_weights(file, weights))
        hashes[WEIGHTS] = f"{checksum(_mapped(folder / WEIGHTS)):08x}"  # of what was written
        text = document_text(document, hashes)
        _write(folder / DOCUMENT, lambda file: file.write_text(text))
        for name in set(present) - {DOCUMENT, *hashes}:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error


def read_program(folder: Path, document: Mapping[str, Any]) -> FusedImage:
    """Reads a program from a folder that ``save_program`` has written, with its ``read_document``.

    Raises UsageError for files that are missing, changed or damaged, and where this processor lacks
    instructions of the program.
    """
    code = decoded(FusedCode, document, folder)
    require_instructions(folder, code.needs)
    code = replace(code, object_code=read_file(folder, document, CODE))
    if SHARED in document:
        return FusedImage(code, _own_and_shared(folder, document, code.weight_bytes))
    return FusedImage(code, read_weights(folder, document, code.weight_bytes))


def _own_and_shared(folder: Path, document: Mapping[str, Any], sizes: tuple[int, ...]) -> tuple[Array, ...]:
    shared = decoded(_Sharing, document, folder).shared_weights
    other = folder / shared.folder
    try:
        theirs = read_document(other, (FORMAT,))
        if theirs["files"].get(WEIGHTS) != shared.checksum:
            raise UsageError(f"{other}: has other weights")
        from_other = _all_weights(other, theirs)
    except UsageError as error:
        hint = f"{folder} reads weights of {other}: export both again"
        raise UsageError(error.message, hint) from error
    with named_damage(folder):
        own_sizes = [size for size, number in zip(sizes, shared.numbers, strict=True) if number == OWN]
        own = iter(read_weights(folder, document, own_sizes))
        weights = tuple(next(own) if number == OWN else from_other[number] for number in shared.numbers)
        if tuple(map(len, weights)) != sizes:
            raise ValueError(f"{WEIGHTS} of {other} has weights of other sizes")
    return weights


@dataclass(frozen=True)
class _Sharing:
    shared_weights: SharedFile


def require_instructions(folder: Path, needs: tuple[str, ...]) -> None:
    """Raises UsageError where this processor lacks one of the instruction sets that a program needs."""
    try:
        require_processor(needs, str(folder))
    except CandidateError as error:
        raise UsageError(error.reason) from error


def read_file(folder: Path, document: Mapping[str, Any], name: str) -> bytes:
    """Returns the content of a program's file ``name``. Raises UsageError if it is missing or changed."""
    with named_damage(folder):
        recorded = str(document["files"][name])
    return _read(folder / name, recorded)


def read_weights(folder: Path, document: Mapping[str, Any], sizes: Sequence[int]) -> tuple[Array, ...]:
    """Returns the packed weights of a folder, of ``sizes`` bytes: read-only arrays in the mapped file.

    Raises UsageError where the file is missing, changed or damaged.
    """
    path = folder / WEIGHTS
    with named_damage(folder):
        recorded = str(document["files"][WEIGHTS])
    try:
        content = _mapped(path)
    except OSError as error:
        raise unreadable(path, error, "a part of the program") from error
    if f"{checksum(content):08x}" != recorded:
        raise UsageError(f"{path}: was changed after the export: its checksum is another")
    with named_damage(folder):
        return tuple(_weights_in(content, sizes))


def document_text(document: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    """Returns the text of program.json; ``hashes``: SHA-256 of files with code, a checksum of the weights.

    A checksum finds damage, as the others do: whoever changes a file on purpose can change program.json too.
    """
    content = {"tuner": __version__, **document, "files": dict(hashes)}
    return json.dumps({**content, HASH: _hash_of(content)}, indent=1) + "\n"


def decoded(kind: type[Content], document: Mapping[str, Any], folder: Path) -> Content:
    """Returns the value of type ``kind``, a dataclass, that the program.json of a folder has.

    Raises UsageError for a document with other keys or values.
    """
    place = f"{folder / DOCUMENT}: is damaged: "
    with named_damage(folder):
        return decode(kind, known_part(kind, document, place), place)


def read_document(folder: Path, formats: Sequence[int]) -> Mapping[str, Any]:
    """Returns the content of program.json, whose format must be one of ``formats``.

    Raises UsageError for a folder without a program, for another format, and for a document that was changed
    or is damaged.
    """
    path = folder / DOCUMENT
    if not path.exists():
        line = f"{folder}: {DOCUMENT} is missing: it is not a program that tuner has exported"
        raise UsageError(line, similar_file_hint(folder))
    with named_damage(folder):
        document = dict(json.loads(_read(path)))
        recorded = document.pop(HASH)
    if document.get("format") not in formats:
        allowed = " or ".join(map(str, formats))
        raise UsageError(f"{path}: found format {document.get('format')}, allowed {allowed}")
    _require_hash(path, _hash_of(document), recorded)
    return document


def _hash_of(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _require_hash(path: Path, actual: str, recorded: str) -> None:
    if actual != recorded:
        raise UsageError(f"{path}: was changed after the export: its SHA-256 is another")


def _read(path: Path, recorded: str | None = None) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error, "a part of the program") from error
    if recorded is not None:
        _require_hash(path, hashlib.sha256(content).hexdigest(), recorded)
    return content


def _write(path: Path, write: Callable[[Path], object]) -> None:
    partial = path.with_name(path.name + PARTIAL)  # so that no half of a file has its name
    write(partial)
    partial.replace(path)


def _write_weights(path: Path, weights: Sequence[Array]) -> None:
    """Writes an array of the bytes of weights, each filled up with zeros to a multiple of 64 bytes."""
    size = _starts(map(len, weights))[-1]
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(file, header)
        for weight in weights:
            file.write(weight.data)
            file.write(bytes(aligned_size(weight.size) - weight.size))


def _mapped(path: Path) -> Array:
    """Returns the bytes of a file, mapped into memory, read-only."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:  # cannot be mapped
            return np.empty(0, np.uint8)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def _weights_in(content: Array, sizes: Sequence[int]) -> Iterator[Array]:
    """Yields the weights in a file that ``_write_weights`` has written; ``sizes`` in bytes."""
    starts = _starts(sizes)
    block = content[content.size - starts[-1] :]  # after a header of a multiple of 64 bytes
    if content.size < starts[-1] or block.ctypes.data % ALIGNMENT_BYTES:
        raise ValueError(f"{WEIGHTS} has weights of other sizes")
    for start, size in zip(starts, sizes, strict=False):
        yield block[start : start + size]


def _starts(sizes: Iterable[int]) -> list[int]:
    """Returns where each weight begins in a block, and the size of the block."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + aligned_size(size))
    return starts


@contextmanager
def named_damage(folder: Path) -> Iterator[None]:
    """Context manager: raises UsageError where program.json has other keys or values than expected."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        text = " ".join(str(error).split())[:100]
        raise UsageError(f"{folder / DOCUMENT}: is damaged: {text}") from error
