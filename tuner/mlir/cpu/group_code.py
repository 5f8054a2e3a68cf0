"""Compiles a group of operations: its script is applied, what is left becomes loops, then LLVM dialect.

Takes the text of an ``OpGroup`` (``tuner.core.grouped_program``) and a bound transform script, or none: then
every operation becomes scalar loops. Gives one function ``group`` that takes bare pointers, inputs first. Of
the math dialect, what has a formula in ``tuner.mlir.math`` becomes arithmetic on vectors; what has none calls
the C library.

    func.func @group(%a: memref<8x64xf32>, %w: memref<2x64x48xf32> {tuner.packing = 48 : i64}, ...)
  becomes
    llvm.func @group(%a: !llvm.ptr, %w: !llvm.ptr, ...) attributes {passthrough = ["no-builtins"]}
  and the packings (None, WeightPacking(48), ...)
"""

from tuner.core.grouped_program import GROUP_ENTRY, GroupCode, WeightPacking
from tuner.mlir.bindings import Op, ir
from tuner.mlir.cpu.failed_assertions import return_failed_assertions
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.cpu.masked_reductions import fill_masked_lanes
from tuner.mlir.cpu.masked_truths import unmask_truths
from tuner.mlir.cpu.masks_as_bytes import read_masks_as_bytes
from tuner.mlir.cpu.pipeline import (
    GROUP_LOOPS_TO_LLVM,
    GROUP_TO_LOOPS,
    NO_BUILTINS,
    PARALLEL_TO_LOOPS,
    TENSORS_TO_BUFFERS,
)
from tuner.mlir.cpu.thread_parts import divide_among_threads
from tuner.mlir.cpu.tiles_as_vectors import tiles_as_vectors
from tuner.mlir.group_form import STORE, group_function, parse_group, prepare
from tuner.mlir.interpreter import apply_script, parse
from tuner.mlir.lowering_stages import reached
from tuner.mlir.math.math_lowering import expand_math
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.byte_dots import lower_byte_dots
from tuner.mlir.rewrite.memref_copies import copy_by_loops
from tuner.mlir.rewrite.packed_weights import packing_of
from tuner.mlir.rewrite.walking import walk

ATTRIBUTES = "tuner."  # prefix of attributes that mean something to tuner only


def compile_group(text: str, script: str | None, threads: int = 1, *, emulates: bool = False) -> GroupCode:
    """Compiles a group's text with a bound script, in the current MLIR context.

    Args:
        text: a module with the function ``group``, as ``OpGroup.text`` has it.
        script: a transform script; None: scalar loops.
        threads: how many threads the loops are divided for, where they can be divided; 1: they are not.
        emulates: AMX tiles and dot products of bytes become vector code, which every processor runs.

    Returns:
        LLVM dialect with one function, which takes a pointer for each input and for each output, and how each
        input has to be packed.

    Raises:
        CandidateError: BIND for text that does not parse, COMPILE where the script or the lowering fails.
    """
    module = parse_group(text)
    if script is not None:
        read_masks_as_bytes(group_function(module))
    prepare(module)
    inputs = len(group_function(module).regions[0].blocks[0].arguments) - len(walk(module, STORE))
    if script is None:
        run_passes(module, TENSORS_TO_BUFFERS)
        copy_by_loops(module)
    else:
        apply_script(module, parse(script, "script"))
    packings = _packings(group_function(module), inputs)
    copy_by_loops(module)
    if emulates:
        tiles_as_vectors(module)
    run_passes(module, GROUP_TO_LOOPS)
    lower_byte_dots(module, emulates=emulates)
    reached("loops", module)
    fill_masked_lanes(module)
    unmask_truths(module)
    _drop_attributes(module)
    if threads > 1:
        run_passes(module, PARALLEL_TO_LOOPS)
    is_divided = threads > 1 and divide_among_threads(group_function(module), threads)
    expand_math(module)
    run_passes(module, GROUP_LOOPS_TO_LLVM)
    asserts = return_failed_assertions(module, GROUP_ENTRY)
    return GroupCode(_with_no_builtins(jit_text(module)), packings, is_divided, asserts)


def _packings(function: Op, inputs: int) -> tuple[WeightPacking | None, ...]:
    """Returns how each input is packed; the outputs are the arguments after the inputs."""
    return tuple(packing_of(function, number) for number in range(inputs))


def _drop_attributes(module: ir.Module) -> None:
    """Drops attributes of tuner from functions and their arguments: LLVM's dialect refuses them."""
    for function in walk(module, "func.func"):
        for name in list(function.attributes):
            if name.startswith(ATTRIBUTES) or name == "arg_attrs":
                del function.attributes[name]


def _with_no_builtins(text: str) -> str:
    """Returns LLVM-dialect text whose functions keep their loops: LLVM makes no library calls of them."""
    lines = text.splitlines(keepends=True)
    return "".join(_marked(line) if line.lstrip().startswith("llvm.func @") else line for line in lines)


def _marked(line: str) -> str:
    if not line.rstrip().endswith("{"):
        return line  # a declaration
    head = line.rstrip().removesuffix("{").rstrip()
    return f"{head} attributes {{{NO_BUILTINS}}} {{\n"
