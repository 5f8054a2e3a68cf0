"""Modules joined into one: names apart, declarations once, each function for its processors."""

import re

import pytest

from tuner.core.errors import CandidateError
from tuner.mlir.cpu.llvm_modules import ModulePart, joined

pytestmark = pytest.mark.mlir

MODULE = """module {
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.mlir.global private constant @table(42 : i64) {addr_space = 0 : i32} : i64
  llvm.func @matmul(%a: !llvm.ptr) attributes {llvm.emit_c_interface, passthrough = ["no-builtins"]} {
    %size = llvm.mlir.constant(8 : i64) : i64
    %memory = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
    %table = llvm.mlir.addressof @table : !llvm.ptr
    %entry = llvm.load %table : !llvm.ptr -> i64
    llvm.store %entry, %a : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @matmul_x2(%a: !llvm.ptr) attributes {llvm.emit_c_interface} {
    llvm.call @matmul(%a) : (!llvm.ptr) -> ()
    llvm.return
  }
}
"""


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


def test_a_part_that_cannot_be_parsed_is_named() -> None:
    with pytest.raises(CandidateError, match="k3_: "):
        joined((ModulePart("module {", "k3_", "x86-64"),))
