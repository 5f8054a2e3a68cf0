"""An exported program of a dynamic size n: a folder with the static programs of its sizes.

    program.json    types in n, range of n; of each program its size, weights, and what says n
    code-320.o      machine code of the program that runs calls up to n = 320
    weights.npy     packed weights of all programs, each once

A size ``a * n + b`` is the list [a, b], and ``a * n + c * m + b`` of two sizes [a, b, c]; where there are
two, the range of m follows that of n, and ``m`` the size n of a program. A call of n runs the program of the
next greater size: its arguments are padded with zeros, the arguments ``added`` say n, and its results are
cut. ``reads`` and ``returns`` say in which order a static program takes the arguments, and returns the
results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tuner.core.dynamic_sizes import MOST_SIZES, SizeRange, Sizes, numbers_of, sizes_of
from tuner.core.errors import UsageError
from tuner.core.serialization import encode, form, if_changed
from tuner.models.run.exported import (
    WEIGHTS,
    decoded,
    named_damage,
    read_file,
    read_weights,
    require_instructions,
    write_folder,
)
from tuner.models.run.fused_code import FusedCode
from tuner.models.run.sized_types import SizeArgument, SizedSignature, SizedType

SIZED_FORMAT = 9  # of program.json; other numbers than those of a program of static sizes
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SizedCode:
    """The static program for calls of n up to ``size``, with its packed weights.

    ``added``: arguments that tell it n, after the arguments of the program of the dynamic size.
    """

    size: Sizes
    added: tuple[SizeArgument, ...]
    code: FusedCode
    weights: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class SizedImage:
    """A program of a dynamic size: its types, the range of n, and its static programs by ascending size."""

    signature: SizedSignature
    sizes: SizeRange
    programs: tuple[SizedCode, ...]


def _ends_of(sizes: SizeRange) -> tuple[int, ...]:
    return tuple(chain(*zip(numbers_of(sizes.least), numbers_of(sizes.greatest), strict=True)))


def _range_of(ends: tuple[int, ...]) -> SizeRange:
    if len(ends) not in (2, 2 * MOST_SIZES):
        raise UsageError(f"found {list(ends)}, allowed a list of 2, or of 4")
    return SizeRange(sizes_of(ends[::2]), sizes_of(ends[1::2]))


@dataclass(frozen=True, kw_only=True)
class _Program:
    """A static program in program.json."""

    size: int
    added: tuple[SizeArgument, ...]
    weights: tuple[int, ...]  # indices of its packed weights in the file of all
    code: FusedCode = field(metadata=form(FusedCode, lambda code: code, lambda code: code, is_flat=True))
    m: int = field(default=0, metadata=if_changed())  # 0: there is no second size

    @property
    def sizes(self) -> Sizes:
        """Returns n, or n and m."""
        return (self.size, self.m) if self.m else self.size


@dataclass(frozen=True)
class _Document:
    """The content of program.json, next to format, version and hashes."""

    entry: str
    sizes: SizeRange = field(metadata=form(tuple[int, ...], _ends_of, _range_of))
    arguments: tuple[SizedType, ...]
    results: tuple[SizedType, ...]
    reads: tuple[int, ...]
    returns: tuple[int, ...]
    weight_bytes: tuple[int, ...]
    programs: tuple[_Program, ...]

    def __post_init__(self) -> None:
        ladder = [program.sizes for program in self.programs]
        greatest = self.sizes.greatest
        is_whole = bool(ladder) and ladder[0] in self.sizes and ladder[-1] == greatest
        steps = map(sorted, map(set, zip(*map(numbers_of, ladder), strict=True)))
        if not is_whole or list(map(sizes_of, product(*steps))) != ladder:
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
        size, *m = numbers_of(made.size)
        program = _Program(size=size, m=sum(m), added=made.added, weights=own, code=made.code)
        programs.append(program)
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
        object_code = read_file(folder, document, _code_name(program.sizes))
        with named_damage(folder):
            programs.append(_sized_code(program, object_code, weights))
    signature = SizedSignature(stored.entry, stored.arguments, stored.results, stored.reads, stored.returns)
    return SizedImage(signature, stored.sizes, tuple(programs))


def _sized_code(program: _Program, object_code: bytes, weights: Sequence[Array]) -> SizedCode:
    own = tuple(weights[number] for number in program.weights)
    if tuple(map(len, own)) != program.code.weight_bytes:
        raise ValueError(f"{WEIGHTS} has weights of other sizes")
    return SizedCode(program.sizes, program.added, replace(program.code, object_code=object_code), own)


def _code_name(sizes: Sizes) -> str:
    return f"code-{'x'.join(map(str, numbers_of(sizes)))}.o"
