"""``tuner.load``: an exported program as a function."""

from dataclasses import replace
from pathlib import Path

from tuner.core.errors import CandidateError, UsageError
from tuner.core.typed_arguments import typed_arguments
from tuner.programs.run.artefact import read_program_files
from tuner.programs.run.grouped_code import GroupedCode
from tuner.programs.run.grouped_function import GroupedFunction
from tuner.runtime.cpu.program_team import checked_threads


@typed_arguments
def load(folder: str | Path, threads: int | None = None) -> GroupedFunction:
    """Loads a program that ``program.export(folder)`` has written; needs numpy alone.

    Args:
        folder: path of the folder.
        threads: that the program runs on, up to 256; None: as many as it was compiled for. More than one
            only for a program that was compiled for several.

    Returns:
        The program, which takes and returns arrays.

    Raises:
        UsageError: the folder has no program, a file was changed, this processor lacks instructions, or the
            program cannot run on so many threads.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tuner
        >>> payload = '''
        ... func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
        ...   %y = arith.addf %x, %x : tensor<4xf32>
        ...   return %y : tensor<4xf32>
        ... }
        ... '''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tuner.compile_program(payload, target="cpu").export(f"{folder}/twice")
        ...     program = tuner.load(f"{folder}/twice")
        >>> program(np.ones(4, np.float32))
        array([2., 2., 2., 2.], dtype=float32)
    """
    image = read_program_files(Path(folder))
    if threads is not None:
        image = replace(image, code=replace(image.code, threads=_checked(threads, image.code)))
    try:
        return GroupedFunction(image.code, image.weights)
    except CandidateError as error:
        raise UsageError(f"{folder}: {error.reason}") from error


def _checked(threads: int, code: GroupedCode) -> int:
    if code.threads > 1:
        return checked_threads(threads)
    try:
        return checked_threads(threads, most=1)
    except UsageError as error:
        raise UsageError(error.message, "compile the program with threads=2 or more, and export it") from None
