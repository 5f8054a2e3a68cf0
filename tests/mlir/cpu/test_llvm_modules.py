"""Modules joined into one, the instructions that they need, and what is refused before the JIT sees it."""

import re
from typing import Any

import pytest

from tests.targets.evaluation import fails
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.cpu.llvm_modules import ModulePart, joined
from tuner.mlir.cpu.lowering import RESOLVABLE, VECTOR_LIMIT_BYTES, reject_unjittable
from tuner.mlir.cpu.needed_instructions import instructions_needed

MODULE = text_beside(__file__, "MODULE")


@pytest.mark.mlir
def test_functions_and_data_of_each_module_get_its_prefix_and_its_processor() -> None:
    parts = (("one_", "x86-64-v3", ""), ("two_", "x86-64-v4", "+avx512vnni"))
    text = joined(tuple(ModulePart(MODULE, *part) for part in parts))
    assert text.count("llvm.func @malloc(i64) -> !llvm.ptr") == 1
    assert text.count("llvm.call @malloc") == 2
    for prefix, processor, features in parts:
        assert f"llvm.mlir.addressof @{prefix}table" in text
        assert f"llvm.call @{prefix}matmul(" in text
        options = f'["no-builtins", ["target-cpu", "{processor}"], ["target-features", "{features}"]]'
        for name in ("matmul", "matmul_x2"):
            assert f"@{prefix}{name}(%arg0: !llvm.ptr) attributes {{passthrough = {options}}}" in text
    assert not re.search(r"@(?:matmul|table)\b", text)
    assert "emit_c_interface" not in text


@pytest.mark.mlir
def test_a_part_that_cannot_be_parsed_is_named() -> None:
    with pytest.raises(CandidateError, match="k3_:1:7: "):
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
        ("llvm.aarch64.neon.sdot.v4i32.v16i8", ("dotprod",)),
        ("llvm.aarch64.neon.smmla.v4i32.v16i8", ("i8mm",)),
        ("llvm.aarch64.neon.usdot.v4i32.v16i8", ("i8mm",)),
        ("llvm.aarch64.neon.bfdot.v4f32.v8bf16", ("arm-bf16",)),
        ("llvm.aarch64.neon.bfmmla", ("arm-bf16",)),
    ],
)
def test_intrinsics_decide_what_code_needs_and_vectors_of_any_width_nothing(called: str, needs: Any) -> None:
    assert instructions_needed(f'%0 = llvm.call_intrinsic "{called}"(%a, %b) : (i64, i64) -> i64') == needs
    assert instructions_needed("%0 = llvm.intr.fma(%a, %b, %c) : (vector<16xf32>, ...)") == ()


# What is refused before the JIT sees it.
KERNEL = "  llvm.func @matmul(%arg0: !llvm.ptr) attributes {llvm.emit_c_interface} {\n    llvm.return\n  }\n"


def module(*lines: str) -> str:
    return "module {\n" + "".join(f"  {line}\n" for line in lines) + KERNEL + "}\n"


@pytest.mark.parametrize(
    ("declaration", "symbol"),
    [
        ("llvm.func @memrefCopy(i64, !llvm.ptr, !llvm.ptr)", "memrefCopy"),
        ('llvm.func @exp(f64) -> f64 attributes {sym_visibility = "private"}', "exp"),
        ("llvm.func internal fastcc @printF32(f32)", "printF32"),
        ('llvm.func @"odd name"(i64)', "odd name"),
        ("llvm.func @_mlir_memref_to_llvm_alloc(i64) -> !llvm.ptr", "_mlir_memref_to_llvm_alloc"),
    ],
)
def test_a_symbol_that_nothing_defines_is_refused(declaration: str, symbol: str) -> None:
    with fails(Stage.RESOURCES, rf"^unresolved symbol {re.escape(symbol)}: "):
        reject_unjittable(module("llvm.func @malloc(i64) -> !llvm.ptr", declaration))


WIDE = {"700xf32": 2800, "257xf64": 2056, "1025xbf16": 2050, "2049xi8": 2049}


@pytest.mark.parametrize(("vector", "size"), WIDE.items())
def test_a_vector_wider_than_any_kernel_wants_is_refused(vector: str, size: int) -> None:
    with fails(Stage.RESOURCES, rf"^vector<{vector}> is {size} bytes wide, allowed {VECTOR_LIMIT_BYTES}$"):
        reject_unjittable(module(f"%0 = llvm.mlir.undef : vector<{vector}>"))


def test_the_c_library_register_tiles_and_transposes_pass() -> None:
    declared = (f"llvm.func @{name}(i64) -> !llvm.ptr" for name in sorted(RESOLVABLE))
    reject_unjittable(module(*declared))
    for vector in ("448xf32", "256xf32", "256xf64", "16xi1", "1024xbf16"):
        reject_unjittable(module(f"%0 = llvm.mlir.undef : vector<{vector}>"))
