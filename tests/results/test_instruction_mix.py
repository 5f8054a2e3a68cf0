"""Counts of instructions in texts of code."""

from tests.texts import text_beside
from tuner.results.instruction_mix import assembly_mix, instruction_mix


def test_instructions_are_counted_without_types_guards_constants_names_of_functions_and_prefixes() -> None:
    ptx = (("fma.rn", 2), *((name, 1) for name in ("add", "bra", "ld.global", "ld.param", "ret")))
    assert instruction_mix(text_beside(__file__, "PTX")) == ptx
    llvm = tuple((name, 1) for name in ("intr.fmuladd", "load", "return", "store"))
    assert instruction_mix(text_beside(__file__, "LLVM")) == llvm
    x86 = "<matmul>:\n  vxorps %xmm0,%xmm0,%xmm0\n  data16 cs nopw 0x0(%rax)\n  vxorps %xmm1,%xmm1,%xmm1\n"
    assert assembly_mix(x86) == (("vxorps", 2), ("nopw", 1))
    assert assembly_mix("<k>:\n  HMMA.16816.F32 R4, R8, R12, R4\n") == (("HMMA.16816.F32", 1),)
