"""An exported program of a dynamic size n: a folder with the static programs of its sizes.

    program.json    types in n, range of n; of each program its size, weights, and what says n
    code-320.o      machine code of the program that runs calls up to n = 320
    weights.npy     packed weights of all programs, each once

A size ``a * n + b`` is the list [a, b]. A call of n runs the program of the next greater size: its arguments
are padded with zeros, the arguments ``added`` say n, and its results are cut. ``reads`` and ``returns`` say
in which order a static program takes the arguments, and returns the results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tuner.core.dynamic_sizes import LinearSize, SizeRange
from tuner.programs.run.exported import (
    WEIGHTS,
    code_document,
    code_of,
    named_damage,
    read_file,
    read_weights,
    require_instructions,
    write_folder,
)
from tuner.programs.run.fused_code import FusedCode
from tuner.programs.run.sized_types import MASK, NUMBER, SizeArgument, SizedSignature, SizedType

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


def save_sizes(image: SizedImage, folder: Path) -> None:
    """Writes a program of a dynamic size into a folder, which is created if needed; each weight once.

    Raises UsageError for a folder that has other files, or that cannot be written.
    """
    weights = {id(weight): weight for made in image.programs for weight in made.weights}
    numbers = dict(zip(weights, range(len(weights)), strict=True))
    documents = []
    for made in image.programs:
        own = [numbers[id(weight)] for weight in made.weights]
        documents.append({**_program_document(made), "weights": own, **code_document(made.code)})
    document = {
        "format": SIZED_FORMAT,
        "entry": image.signature.entry,
        "sizes": [image.sizes.least, image.sizes.greatest],
        "arguments": list(map(_type_document, image.signature.arguments)),
        "results": list(map(_type_document, image.signature.results)),
        "reads": list(image.signature.reads),
        "returns": list(image.signature.returns),
        "weight_bytes": list(map(attrgetter("nbytes"), weights.values())),
        "programs": documents,
    }
    codes = {_code_name(made.size): made.code.object_code for made in image.programs}
    write_folder(folder, document, codes, list(weights.values()))


def read_sizes(folder: Path, document: Mapping[str, Any]) -> SizedImage:
    """Reads a program that ``save_sizes`` has written, with the document of ``read_document``.

    Raises UsageError for files that are missing, changed or damaged, and where this processor lacks
    instructions of one of the programs.
    """
    with named_damage(folder):
        least, greatest = map(int, document["sizes"])
        sizes = SizeRange(least, greatest)
        arguments = tuple(map(_type_of, document["arguments"]))
        results = tuple(map(_type_of, document["results"]))
        reads = tuple(map(int, document["reads"]))
        returns = tuple(map(int, document["returns"]))
        signature = SizedSignature(str(document["entry"]), arguments, results, reads, returns)
        weight_bytes = list(map(int, document["weight_bytes"]))
        written = list(map(dict, document["programs"]))
        _require_ladder(list(map(int, map(itemgetter("size"), written))), sizes)
    weights = read_weights(folder, document, weight_bytes)
    programs = []
    for made in written:
        require_instructions(folder, made)
        with named_damage(folder):
            name = _code_name(int(made["size"]))
        code = read_file(folder, document, name)
        with named_damage(folder):
            programs.append(_program_of(made, code, weights))
    return SizedImage(signature, sizes, tuple(programs))


def _require_ladder(ladder: list[int], sizes: SizeRange) -> None:
    is_ascending = ladder == sorted(set(ladder))
    if not ladder or not is_ascending or ladder[0] < sizes.least or ladder[-1] != sizes.greatest:
        raise ValueError(f"its programs are not of sizes up to {sizes.greatest}")


def _code_name(size: int) -> str:
    return f"code-{size}.o"


def _program_document(made: SizedCode) -> dict[str, Any]:
    return {"size": made.size, "added": list(map(_argument_document, made.added))}


def _program_of(document: Mapping[str, Any], object_code: bytes, weights: Sequence[Array]) -> SizedCode:
    code = code_of(document, object_code)
    own = tuple(weights[int(number)] for number in document["weights"])
    if tuple(map(len, own)) != code.weight_bytes:
        raise ValueError(f"{WEIGHTS} has weights of other sizes")
    added = tuple(map(_argument_of, document["added"]))
    return SizedCode(int(document["size"]), added, code, own)


def _argument_document(argument: SizeArgument) -> dict[str, Any]:
    return {
        "use": argument.use,
        "size": _size_document(argument.size),
        "shape": list(argument.shape),
        "element": argument.element,
    }


def _argument_of(document: Mapping[str, Any]) -> SizeArgument:
    use = str(document["use"])
    if use not in (MASK, NUMBER):
        raise ValueError(f"use of an added argument: found {use}, allowed {MASK}, {NUMBER}")
    shape = tuple(map(int, document["shape"]))
    return SizeArgument(use, _size_of(document["size"]), shape, str(document["element"]))


def _type_document(type_: SizedType) -> dict[str, Any]:
    return {"shape": list(map(_size_document, type_.shape)), "element": type_.element}


def _type_of(document: Mapping[str, Any]) -> SizedType:
    return SizedType(tuple(map(_size_of, document["shape"])), str(document["element"]))


def _size_document(size: LinearSize) -> list[int]:
    return [size.of_n, size.constant]


def _size_of(numbers: Sequence[int]) -> LinearSize:
    of_n, constant = map(int, numbers)
    return LinearSize(of_n, constant)
