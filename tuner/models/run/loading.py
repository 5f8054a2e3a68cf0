"""``tuner.load``: loads an exported program, without a compiler."""

from dataclasses import replace
from pathlib import Path

from tuner.core.dynamic_sizes import Sizes
from tuner.core.errors import CandidateError, UsageError
from tuner.core.typed_arguments import typed_arguments
from tuner.models.run.exported import FORMAT, read_document, read_program
from tuner.models.run.exported_sizes import SIZED_FORMAT, SizedImage, read_sizes
from tuner.models.run.fused_code import FusedCode
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.sized_function import SizedFunction, SizedMember
from tuner.runtime.cpu.team_threads import checked_threads

FORMATS = (FORMAT, SIZED_FORMAT)


@typed_arguments
def load(folder: str | Path, threads: int | None = None) -> FusedFunction | SizedFunction:
    """Loads a program that ``program.export(folder)`` has written; needs numpy alone.

    Args:
        folder: path of the folder.
        threads: that the program runs on, up to 256; None: as many as it was compiled for. More than one
            only for a program that was compiled for several.

    Returns:
        The program, which takes and returns arrays; a ``SizedFunction`` where it was exported with a
        dynamic size.

    Raises:
        UsageError: the folder has no program, a file was changed, this processor lacks instructions, or the
            program cannot run on so many threads.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tuner
        >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
        >>> payload = f"!t = tensor<4xf32> {twice}"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tuner.compile_program(payload, target="cpu").export(f"{folder}/twice")
        ...     program = tuner.load(f"{folder}/twice")
        >>> program(np.ones(4, np.float32))
        array([2., 2., 2., 2.], dtype=float32)
    """
    path = Path(folder)
    document = read_document(path, FORMATS)
    try:
        if document["format"] == FORMAT:
            image = read_program(path, document)
            return FusedFunction(_on_threads(image.code, threads), image.weights)
        return _sized(read_sizes(path, document), threads)
    except CandidateError as error:
        raise UsageError(f"{folder}: {error.reason}") from error


def _sized(image: SizedImage, threads: int | None) -> SizedFunction:
    codes = {made.size: replace(made, code=_on_threads(made.code, threads)) for made in image.programs}

    def member_of(size: Sizes) -> SizedMember:
        made = codes[size]
        return SizedMember(size, made.added, FusedFunction(made.code, made.weights))

    return SizedFunction(image.signature, image.sizes, tuple(codes), member_of)


def _on_threads(code: FusedCode, threads: int | None) -> FusedCode:
    if threads is None:
        return code
    return replace(code, threads=_checked(threads, code))


def _checked(threads: int, code: FusedCode) -> int:
    if code.threads > 1:
        return checked_threads(threads)
    try:
        return checked_threads(threads, most=1)
    except UsageError as error:
        raise UsageError(error.message, "compile the program with threads=2 or more, and export it") from None
