"""Models that the command line takes: ``model.py:function`` and ``model.pt2``, as text of a payload.

The function returns a module and its example inputs: ``return module, (x,)``. A file of Python is the user's
own code, which runs in a child process.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.errors import Stage, UsageError, failing_at
from tuner.tuning.parts.child_call import call_in_child

if TYPE_CHECKING:
    import torch

FUNCTION = re.compile(r"(.+\.py):([A-Za-z_]\w*)")  # of a file of Python
EXPORTED = ".pt2"  # ends the name of a file that torch.export.save has written
TIMEOUT_S = 600.0
NO_TORCH = "pip install 'mlir-tuner[torch]'"


@dataclass(frozen=True)
class _Reader:
    """What a child process does: a value, so that it can be sent there."""

    name: str

    def __call__(self) -> str:
        with failing_at(Stage.BIND):
            return model_text(self.name)


def is_model(name: str) -> bool:
    """Returns whether a payload's name is that of a model: ``model.py:function`` or ``model.pt2``."""
    return FUNCTION.fullmatch(name) is not None or name.endswith(EXPORTED)


def model_text_in_child(name: str) -> str:
    """Returns the payload of a model, which a child process reads.

    Raises UsageError for a model that cannot be read or that torch-mlir refuses, and without PyTorch.
    """
    return call_in_child("model", _Reader(name), TIMEOUT_S)


def model_text(name: str) -> str:
    """Returns the payload of a model, made in this process. Raises UsageError as ``model_text_in_child``."""
    from tuner.programs.torch_models.exported_module import export_module
    from tuner.programs.torch_models.lowering import lower_in_process

    return export_module(*read_model(name), lower=lower_in_process).text


def read_model(name: str) -> "tuple[torch.nn.Module | torch.export.ExportedProgram, tuple[Any, ...]]":
    """Returns the module of a model and its example inputs; an exported program has its own: ().

    Raises UsageError for a model that cannot be read, and without PyTorch.
    """
    found = FUNCTION.fullmatch(name)
    path = Path(found[1] if found else name)
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    try:
        import torch
    except ModuleNotFoundError as error:
        raise UsageError(f"{path}: PyTorch is not installed", NO_TORCH) from error
    from tuner.programs.torch_models.lowering import first_line

    try:
        return (torch.export.load(path), ()) if found is None else _called(path, found[2])
    except UsageError:
        raise
    except Exception as error:  # of the user's code, or of a file that is no exported program
        raise UsageError(f"{name}: {type(error).__name__}: {first_line(error)}") from error


def _called(path: Path, function: str) -> tuple[Any, tuple[Any, ...]]:
    """Returns the module and the example inputs that a function of a file of Python returns."""
    import runpy
    import sys

    sys.path.insert(0, str(path.parent.resolve()))  # as ``python model.py`` does
    names = runpy.run_path(str(path))
    if function not in names:
        raise UsageError(f"{path}: has no function {function!r}")
    made = names[function]()
    if not isinstance(made, tuple) or len(made) != 2:
        raise UsageError(f"{path}:{function}: must return (module, example inputs)")
    module, inputs = made
    return module, inputs if isinstance(inputs, tuple) else (inputs,)
