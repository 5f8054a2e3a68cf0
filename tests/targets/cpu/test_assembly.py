import shutil

import pytest

from tuner.core.errors import CandidateError
from tuner.targets.cpu.compiler import assembly, instructions

LISTING = """
o.o:     file format elf64-x86-64

Disassembly of section .text:

0000000000000000 <matmul>:
   0:	add    $0x1c00,%rdi
   7:	vfmadd231ps (%rsi),%zmm1,%zmm2
0000000000000010 <_mlir_matmul>:
  10:	ret
"""
ADD = """llvm.func @add(%a: f32, %b: f32) -> f32 {
  %c = llvm.fadd %a, %b : f32
  llvm.return %c : f32
}"""


def test_addresses_are_left_out() -> None:
    assert instructions(LISTING).splitlines() == [
        "<matmul>:",
        "  add    $0x1c00,%rdi",
        "  vfmadd231ps (%rsi),%zmm1,%zmm2",
        "<_mlir_matmul>:",
        "  ret",
    ]


@pytest.mark.mlir
@pytest.mark.skipif(
    not (shutil.which("objdump") or shutil.which("llvm-objdump")),
    reason="needs objdump (binutils)",
)
def test_a_function_becomes_instructions_of_this_processor() -> None:
    text = assembly(ADD)
    assert "<add>:" in text
    assert "addss" in text
    with pytest.raises(CandidateError, match="expected"):
        assembly("llvm.func @add(")


def test_without_objdump_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert assembly(ADD) == ""
