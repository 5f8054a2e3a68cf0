"""Marks the functions of code in LLVM dialect with the processor that LLVM compiles them for.

Without the marks, the JIT compiles for the processor that it runs on.

    llvm.func @f(%c: !llvm.ptr) attributes {llvm.emit_c_interface, passthrough = ["no-builtins"]} {
  becomes
    llvm.func @f(%c: !llvm.ptr) attributes {llvm.emit_c_interface, passthrough = ["no-builtins",
      ["target-cpu", "znver4"], ["target-features", "+avx2,..."]]} {
"""

import re

from tuner.mlir.cpu.pipeline import EXPORTED, NO_BUILTINS

ATTRIBUTES = re.compile(rf"attributes {{{re.escape(EXPORTED)}(?:, {re.escape(NO_BUILTINS)})?}}")


def compiled_for(llvm_text: str, processor: str, features: str) -> str:
    """Returns code in LLVM dialect whose exported functions LLVM compiles for ``processor``.

    Args:
        llvm_text: a module, as ``lower_to_llvm`` and ``with_batch_loops`` return it.
        processor: LLVM's name, as of -mcpu: "znver4".
        features: LLVM's features: "+avx2,+fma". They replace those of the processor that compiles.
    """
    words = f'"no-builtins", ["target-cpu", "{processor}"], ["target-features", "{features}"]'
    return ATTRIBUTES.sub(f"attributes {{{EXPORTED}, passthrough = [{words}]}}", llvm_text)
