"""An exported program of a dynamic size n: a folder with the static programs of its sizes.

    program.json    types in n, range of n; of each program its size, weights, and what says n
    code-320.o      machine code of the program that runs calls up to n = 320
    weights.npy     packed weights of all programs, each once

A size ``a * n + b`` is the list [a, b]. A call of n runs the program of the next greater size: its arguments
are padded with zeros, the arguments ``added`` say n, and its results are cut. ``reads`` and ``returns`` say
in which order a static program takes the arguments, and returns the results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tuner.core.dynamic_sizes import SizeRange
from tuner.core.serialization import encode, form
from tuner.programs.run.exported import (
    WEIGHTS,
    decoded,
    named_damage,
    read_file,
    read_weights,
    require_instructions,
    write_folder,
)
from tuner.programs.run.fused_code import FusedCode
from tuner.programs.run.sized_types import SizeArgument, SizedSignature, SizedType

SIZED_FORMAT = 9  # of program.json; other numbers than those of a program of static sizes
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SizedCode:
    """The static program for calls of n up to ``size``, with its packed weights.

    ``added``: arguments that tell it n, after the arguments of the program of the dynamic size.
    """

    size: int
    added: tuple[SizeArgument, ...]
    code: FusedCode
    weights: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class SizedImage:
    """A program of a dynamic size: its types, the range of n, and its static programs by ascending size."""

    signature: SizedSignature
    sizes: SizeRange
    programs: tuple[SizedCode, ...]


@dataclass(frozen=True)
class _Program:
    """A static program in program.json."""

    size: int
    added: tuple[SizeArgument, ...]
    weights: tuple[int, ...]  # indices of its packed weights in the file of all
    code: FusedCode = field(metadata=form(FusedCode, lambda code: code, lambda code: code, is_flat=True))


@dataclass(frozen=True)
class _Document:
    """The content of program.json, next to format, version and hashes."""

    entry: str
    sizes: SizeRange = field(metadata=form(tuple[int, int], astuple, lambda ends: SizeRange(*ends)))
    arguments: tuple[SizedType, ...]
    results: tuple[SizedType, ...]
    reads: tuple[int, ...]
    returns: tuple[int, ...]
    weight_bytes: tuple[int, ...]
    programs: tuple[_Program, ...]

    def __post_init__(self) -> None:
        ladder = [program.size for program in self.programs]
        is_ascending = ladder == sorted(set(ladder))
        least, greatest = self.sizes.least, self.sizes.greatest
        if not ladder or not is_ascending or ladder[0] < least or ladder[-1] != greatest:
            raise ValueError(f"its programs are not of sizes up to {greatest}")


def save_sizes(image: SizedImage, folder: Path) -> None:
    """Writes a program of a dynamic size into a folder, which is created if needed; each weight once.

    Raises UsageError for a folder that has other files, or that cannot be written.
    """
    weights = {id(weight): weight for made in image.programs for weight in made.weights}
    numbers = dict(zip(weights, range(len(weights)), strict=True))
    programs = []
    for made in image.programs:
        own = tuple(numbers[id(weight)] for weight in made.weights)
        programs.append(_Program(made.size, made.added, own, made.code))
    signature = image.signature
    document = _Document(
        signature.entry,
        image.sizes,
        signature.arguments,
        signature.results,
        signature.reads,
        signature.returns,
        tuple(map(attrgetter("nbytes"), weights.values())),
        tuple(programs),
    )
    codes = {_code_name(made.size): made.code.object_code for made in image.programs}
    write_folder(folder, {"format": SIZED_FORMAT, **encode(document)}, codes, list(weights.values()))


def read_sizes(folder: Path, document: Mapping[str, Any]) -> SizedImage:
    """Reads a program that ``save_sizes`` has written, with the document of ``read_document``.

    Raises UsageError for files that are missing, changed or damaged, and where this processor lacks
    instructions of one of the programs.
    """
    stored = decoded(_Document, document, folder)
    weights = read_weights(folder, document, stored.weight_bytes)
    programs = []
    for program in stored.programs:
        require_instructions(folder, program.code.needs)
        object_code = read_file(folder, document, _code_name(program.size))
        with named_damage(folder):
            programs.append(_sized_code(program, object_code, weights))
    signature = SizedSignature(stored.entry, stored.arguments, stored.results, stored.reads, stored.returns)
    return SizedImage(signature, stored.sizes, tuple(programs))


def _sized_code(program: _Program, object_code: bytes, weights: Sequence[Array]) -> SizedCode:
    own = tuple(weights[number] for number in program.weights)
    if tuple(map(len, own)) != program.code.weight_bytes:
        raise ValueError(f"{WEIGHTS} has weights of other sizes")
    return SizedCode(program.size, program.added, replace(program.code, object_code=object_code), own)


def _code_name(size: int) -> str:
    return f"code-{size}.o"
