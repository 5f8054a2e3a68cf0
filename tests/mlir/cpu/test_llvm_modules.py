"""Modules joined into one: names apart, declarations once, each function for its processors."""

import re

import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.cpu.llvm_modules import ModulePart, instructions_needed, joined

MODULE = text_beside(__file__, "MODULE")


@pytest.mark.mlir
def test_functions_and_data_of_each_module_get_its_prefix_and_its_processor() -> None:
    text = joined(
        (
            ModulePart(MODULE, "one_", "x86-64-v3"),
            ModulePart(MODULE, "two_", "x86-64-v4", "+avx512vnni"),
        )
    )
    assert text.count("llvm.func @malloc(i64) -> !llvm.ptr") == 1
    assert text.count("llvm.call @malloc") == 2
    for prefix, processor, features in (("one_", "x86-64-v3", ""), ("two_", "x86-64-v4", "+avx512vnni")):
        assert f"llvm.mlir.addressof @{prefix}table" in text
        assert f"llvm.call @{prefix}matmul(" in text
        options = f'["no-builtins", ["target-cpu", "{processor}"], ["target-features", "{features}"]]'
        for name in ("matmul", "matmul_x2"):
            assert f"@{prefix}{name}(%arg0: !llvm.ptr) attributes {{passthrough = {options}}}" in text
    assert not re.search(r"@(?:matmul|table)\b", text)
    assert "emit_c_interface" not in text


@pytest.mark.mlir
def test_a_part_that_cannot_be_parsed_is_named() -> None:
    with pytest.raises(CandidateError, match="k3_: "):
        joined((ModulePart("module {", "k3_", "x86-64"),))


# What code in LLVM dialect needs is worked out from the intrinsics that it calls.


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
