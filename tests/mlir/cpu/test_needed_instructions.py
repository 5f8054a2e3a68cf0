"""What code in LLVM dialect needs is worked out from the intrinsics that it calls."""

import pytest

from tuner.mlir.cpu.llvm_modules import instructions_needed


@pytest.mark.parametrize(
    ("called", "needs"),
    [
        ("llvm.x86.avx512bf16.dpbf16ps.512", ("avx512-bf16",)),
        ("llvm.x86.avx512.vpdpbusd.512", ("vnni", "avx512")),
        ("llvm.x86.avx512.vpdpbusd.256", ("vnni",)),
        ("llvm.x86.avx512.pmaddw.d.512", ("avx512",)),
        ("llvm.x86.avx2.pmadd.wd", ("avx2",)),
        ("llvm.x86.tdpbf16ps.internal", ("amx-bf16",)),
        ("llvm.x86.tdpbssd.internal", ("amx-int8",)),
        ("llvm.x86.sse42.crc32.32.8", ()),
    ],
)
def test_intrinsics_decide_what_code_needs(called: str, needs: tuple[str, ...]) -> None:
    text = f'%0 = llvm.call_intrinsic "{called}"(%a, %b) : (i64, i64) -> i64'
    assert instructions_needed(text) == needs


def test_vectors_of_any_width_need_nothing() -> None:
    assert instructions_needed("%0 = llvm.intr.fma(%a, %b, %c) : (vector<16xf32>, ...)") == ()
