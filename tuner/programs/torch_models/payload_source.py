"""Reads the payload that a command names: a file of MLIR, stdin, or a PyTorch model."""

from pathlib import Path

from tuner.core.text_file import read_text_or_stdin
from tuner.programs.torch_models.model_file import is_model, model_text_in_child


def read_payload_text(payload: Path) -> str:
    """Returns MLIR text of a file, of stdin ("-"), or of a model: ``model.py:function``, ``model.pt2``.

    Raises UsageError for what cannot be read, and for a model that torch-mlir refuses.
    """
    name = str(payload)
    return model_text_in_child(name) if is_model(name) else read_text_or_stdin(payload, "MLIR text")
