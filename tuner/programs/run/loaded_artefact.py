"""``tuner.load``: an exported program as a function."""

from pathlib import Path

from tuner.core.errors import CandidateError, UsageError
from tuner.programs.run.artefact import read_program_files
from tuner.programs.run.grouped_function import GroupedFunction


def load(folder: str | Path) -> GroupedFunction:
    """Loads a program that ``program.export(folder)`` has written; needs numpy alone.

    Args:
        folder: path of the folder.

    Returns:
        The program, which takes and returns arrays.

    Raises:
        UsageError: the folder has no program, a file was changed, or this processor lacks instructions.

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
    try:
        return GroupedFunction(image.code, image.weights)
    except CandidateError as error:
        raise UsageError(f"{folder}: {error.reason}") from error
