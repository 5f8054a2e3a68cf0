"""Code for another processor is refused before it is loaded."""

import pytest

from tuner.core.errors import CandidateError
from tuner.programs.run import fused_code
from tuner.programs.run.fused_code import require_processor


def test_another_processor_is_refused() -> None:
    with pytest.raises(
        CandidateError, match="folder: needs sve and neon, which this processor does not have"
    ):
        require_processor(("sve", "neon"), "folder")


def test_tiles_that_the_system_refuses_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_code, "own_flags", lambda: {"amx_tile", "amx_bf16"})
    monkeypatch.setattr(fused_code, "may_use_tiles", lambda: False)
    with pytest.raises(CandidateError, match="main: needs AMX, which the operating system refuses"):
        require_processor(("amx-bf16",), "main")
