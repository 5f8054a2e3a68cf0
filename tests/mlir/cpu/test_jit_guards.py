"""What is refused before the JIT sees it."""

import re

import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.cpu.lowering import RESOLVABLE, VECTOR_LIMIT_BYTES, reject_what_the_jit_cannot_take

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
    with pytest.raises(CandidateError, match=rf"^unresolved symbol {re.escape(symbol)}: ") as caught:
        reject_what_the_jit_cannot_take(module("llvm.func @malloc(i64) -> !llvm.ptr", declaration))
    assert caught.value.stage == Stage.RESOURCES


def test_definitions_and_the_c_library_pass() -> None:
    reject_what_the_jit_cannot_take(
        module(*(f"llvm.func @{name}(i64) -> !llvm.ptr" for name in sorted(RESOLVABLE)))
    )


@pytest.mark.parametrize(
    ("vector", "size"), [("700xf32", 2800), ("257xf64", 2056), ("1025xbf16", 2050), ("2049xi8", 2049)]
)
def test_a_vector_wider_than_any_kernel_wants_is_refused(vector: str, size: int) -> None:
    text = module(f"%0 = llvm.mlir.undef : vector<{vector}>")
    reason = rf"^vector<{vector}> is {size} bytes wide, allowed {VECTOR_LIMIT_BYTES}$"
    with pytest.raises(CandidateError, match=reason) as caught:
        reject_what_the_jit_cannot_take(text)
    assert caught.value.stage == Stage.RESOURCES


@pytest.mark.parametrize("vector", ["448xf32", "256xf32", "256xf64", "16xi1", "1024xbf16"])
def test_register_tiles_and_transposes_pass(vector: str) -> None:
    reject_what_the_jit_cannot_take(module(f"%0 = llvm.mlir.undef : vector<{vector}>"))
