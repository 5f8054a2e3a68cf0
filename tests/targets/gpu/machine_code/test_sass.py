from pathlib import Path

import pytest

from tests.bundle.values import program
from tests.targets.gpu.machine_code.listings import FFMA, LDS, listing
from tuner.targets.gpu.cuda_tools import Tool
from tuner.targets.gpu.machine_code import sass as module
from tuner.targets.gpu.machine_code.sass import sass

TOOL = Tool(Path("nvdisasm"), "PATH")


def test_kernels_are_told_instruction_by_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "nvdisasm", lambda: TOOL)
    monkeypatch.setattr(module, "listing_of", lambda _cubin, _tool: listing(LDS, FFMA))
    assert sass(program(cubin=b"code")) == "<k>:\n  LDS.128 R4, [R8]\n  FFMA R0, R1, R2, R0\n"


def test_without_machine_code_or_tool_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "nvdisasm", lambda: TOOL)
    assert sass(None) == sass(program(cubin=b"")) == ""
    monkeypatch.setattr(module, "nvdisasm", lambda: None)
    assert sass(program(cubin=b"code")) == ""
