"""The text of programs that the command line takes: MLIR files, stdin, and models of other frameworks."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tuner.cli.options import is_model
from tuner.core.errors import UsageError
from tuner.core.programs import ProgramBaseline
from tuner.core.text_files import read_text_or_stdin
from tuner.runtime.extensions import load

if TYPE_CHECKING:
    from tuner.models.request import ProgramRequest

PYTORCH: Final = "pytorch"  # the one framework whose models have names so far: ``is_model``
SCHEDULE = "transform.with_named_sequence"  # attribute of a module that is a schedule
FUNCTION = re.compile(r"^[^/\n]*\b(?:func|llvm)\.func\b", re.MULTILINE)
# ends of names of files that are not MLIR
OTHER_FILES = frozenset(
    {
        *(".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".o", ".so", ".ll", ".bc", ".ptx", ".cubin"),
        *(".csv", ".html", ".ipynb", ".json", ".md", ".rst", ".toml", ".yaml", ".yml"),
        *(".onnx", ".pt", ".pth", ".safetensors"),
    }
)


class ModelReader(Protocol):
    """The interface of a reader of models of another framework, such as PyTorch.

    A package provides a reader as an entry point of the group ``tuner.models``.
    """

    def text(self, name: str) -> str:
        """Returns the model ``name``, MODEL.py:FUNCTION or MODEL.pt2, as MLIR text.

        Raises UsageError where the model cannot be read or lowered.
        """

    def baselines(self, request: "ProgramRequest") -> tuple[ProgramBaseline, ...]:
        """Times the baselines that ``request`` names on its model; a baseline that fails has the reason."""


def model_reader() -> ModelReader:
    """Imports and returns the reader of PyTorch models, which the entry point ``pytorch`` provides."""
    reader: ModelReader = load("models", PYTORCH)
    return reader


def require_kind_of_payload(payload: Path) -> None:
    """Raises UsageError for a file with the suffix ``.py`` or one of ``OTHER_FILES``, such as ``.json``."""
    name = str(payload)
    if payload.suffix == ".py":
        line = f"{name}: found a Python file, allowed MLIR text, or FILE.py:FUNCTION of a PyTorch model"
        raise UsageError(line, f"{name}:FUNCTION, which returns (module, example inputs)")
    if payload.suffix in OTHER_FILES:
        line = f"{name}: found a {payload.suffix} file, allowed MLIR text (.mlir), FILE.py:FUNCTION, FILE.pt2"
        hint = "a PyTorch model: FILE.py:FUNCTION, which returns (module, example inputs)"
        raise UsageError(line, hint if payload.suffix in (".pt", ".pth", ".onnx") else "")


@dataclass(frozen=True)
class PayloadText:
    """MLIR text of a program in two forms: after and before the schedules in its file are applied."""

    text: str  # schedules are applied
    written: str  # what results are compared with: a schedule may be wrong


def read_payload_text(payload: Path) -> PayloadText:
    """Reads a program: an MLIR file, stdin ("-") or a PyTorch model; applies the schedules in the file.

    Text without schedules is not parsed here. Raises UsageError for a payload that cannot be read, for a
    suffix of files that are not programs, and for a transform script alone; also the errors of a schedule
    that cannot be applied.
    """
    name = str(payload)
    if is_model(name):
        text = model_reader().text(name)
        return PayloadText(text, text)
    require_kind_of_payload(payload)
    text = read_text_or_stdin(payload, "MLIR text")
    if SCHEDULE not in text:
        return PayloadText(text, text)
    if not FUNCTION.search(text):
        line = f"{name}: is a transform script, not a program: it has no function"
        raise UsageError(line, f"tuner apply {name} PROGRAM.mlir")
    from tuner.targets.registry import real_backends  # only where there are schedules: takes long to load

    return PayloadText(real_backends().apply(text, text), text)
