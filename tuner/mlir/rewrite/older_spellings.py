"""Replaces older spellings of GPU ops, which MLIR's parser no longer accepts, by current spellings.

Works on text, because the parser rejects it. Line breaks stay, so that messages name the user's lines.
Comments that contain such an op change too, without effect.

    %n = "gpu.block_dim"() {dimension = "x"} : () -> (index)
    %s = "gpu.all_reduce"(%x) ({}) {op = "add"} : (f32) -> (f32)
  becomes
    %n = "gpu.block_dim"() {dimension = #gpu<dim x>} : () -> (index)
    %s = "gpu.all_reduce"(%x) ({}) {op = #gpu<all_reduce_op add>} : (f32) -> (f32)
"""

import re

from tuner.mlir.rewrite.memory_spaces import NESTED

MARK = "gpu."  # every text with an older spelling contains this
DIMENSION = re.compile(r'("gpu\.\w+"\s*\(\s*\)\s*(?:<\s*)?\{\s*dimension\s*=\s*)"([xyz])"')
SHUFFLE_MODE = re.compile(r'("gpu\.shuffle"\s*\([^)]*\)\s*(?:<\s*)?\{\s*mode\s*=\s*)"(xor|up|down|idx)"')
REDUCED_BY = re.compile(r'(?<![\w.])(op\s*=\s*)"(add|mul|and|or|xor)"')  # of gpu.all_reduce, after its region
NUMBERED_SHARED = re.compile(rf"(memref<{NESTED}),\s*3(?:\s*:\s*\w+)?\s*>")
DYNAMIC = "gpu.dynamic_shared_memory"
MODULE_END = re.compile(r'"gpu\.module_end"\s*\(\s*\)\s*:\s*\(\s*\)\s*->\s*\(\s*\)|gpu\.module_end\b')


def with_current_spellings(text: str) -> str:
    """Returns MLIR text with older spellings of GPU ops replaced by current spellings; lines stay.

    For example ``dimension = "x"`` of ``gpu.block_dim`` becomes ``dimension = #gpu<dim x>``.
    """
    if MARK not in text:
        return text
    text = DIMENSION.sub(r"\1#gpu<dim \2>", text)
    text = SHUFFLE_MODE.sub(r"\1#gpu<shuffle_mode \2>", text)
    if '"gpu.all_reduce"' in text:
        text = REDUCED_BY.sub(r"\1#gpu<all_reduce_op \2>", text)
    if DYNAMIC in text:  # its verifier runs before any pass could change the type
        text = NUMBERED_SHARED.sub(r"\1, #gpu.address_space<workgroup>>", text)
    return MODULE_END.sub("", text)
