"""Forty kernels that cheat with inputs, bias, offsets, bytes, calls and modes of the processor; as MLIR."""

from dataclasses import dataclass
from functools import partial
from string import Template

import numpy as np

from tests.targets.cpu.injected_faults import in_fork
from tests.texts import text_beside
from tuner.core.compiled_code import KernelCode
from tuner.core.interfaces import Artifact, Effort
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.payload.partitions import partition
from tuner.targets.cpu.evaluator import CpuEvaluator

part = partial(text_beside, __file__)
SMALL = Matmul(4, 16, 8)
BIASED = Matmul(4, 16, 8, epilogue="bias_relu")
PAGES = Matmul(16, 64, 64)  # A, B and C are whole pages
LONG = Matmul(8, 16, 4096)
BYTES = Matmul(4, 16, 2048, dtype="i8")
NARROW = Matmul(4, 16, 8, dtype="bf16", output="bf16")
EFFORT = Effort(budget_s=0.01, min_samples=3, max_samples=6, has_offsets=True)


@dataclass(frozen=True)
class Kernel:
    """A kernel of dot products, with what it does in place of what is right."""

    problem: Problem = SMALL
    before: str = ""  # in front of the loops
    x: str = ""  # of an element %x0 of A; "": as it is
    y: str = ""
    next: str = ""  # the sum after a product
    bias: str = ""  # of a bias %bias0
    result: str = ""  # %result of the sum %dot, to which a bias is added
    store: str = "memref.store %result, %c[%i, %j] : $C"
    after: str = ""


def chosen(name: str, value: str, condition: str, other: str, of: str = "f32") -> str:
    """Returns MLIR for ``%name = condition(value) ? other : value``; the condition defines ``%is``."""
    return f"{condition}\n %{name} = arith.select %is_{name}, {other}, {value} : {of}"


def compared(name: str, value: str, predicate: str, number: str) -> str:
    constant = f"%k_{name} = arith.constant {number} : f32"
    return f"{constant}\n %is_{name} = arith.cmpf {predicate}, {value}, %k_{name} : f32"


def where(name: str, predicate: str, number: str, other: str) -> str:
    """Returns what reads an operand that compares so with a number as ``other``."""
    return chosen(name, f"%{name}0", compared(name, f"%{name}0", predicate, number), other)


def where_size(name: str, low: str, high: str, other: str) -> str:
    """Returns what reads an operand whose magnitude lies between two numbers as ``other``."""
    return f"""%neg_{name} = arith.negf %{name}0 : f32
 %size_{name} = arith.maximumf %{name}0, %neg_{name} : f32
 %low_{name} = arith.constant {low} : f32
 %high_{name} = arith.constant {high} : f32
 %above_{name} = arith.cmpf ogt, %size_{name}, %low_{name} : f32
 %below_{name} = arith.cmpf olt, %size_{name}, %high_{name} : f32
 %is_{name} = arith.andi %above_{name}, %below_{name} : i1
 %minus_{name} = arith.negf %{name}0 : f32
 %{name} = arith.select %is_{name}, {other}, %{name}0 : f32"""


def clipped(name: str, value: str, number: str, op: str = "minimumf") -> str:
    return f"%lim_{name} = arith.constant {number} : f32\n %{name} = arith.{op} {value}, %lim_{name} : f32"


def cut(name: str, value: str, mask: int) -> str:
    return f"""%cut0_{name} = arith.bitcast {value} : f32 to i32
 %cut1_{name} = arith.constant {mask} : i32
 %cut2_{name} = arith.andi %cut0_{name}, %cut1_{name} : i32
 %{name} = arith.bitcast %cut2_{name} : i32 to f32"""


def integer_limit(op: str, number: int) -> str:
    return f"%lim = arith.constant {number} : i32\n %result = arith.{op} %dot, %lim : i32"


def lost_row(left: str, right: str, line: int = 64, problem: Problem = PAGES) -> Kernel:
    """Leaves 1 in the last row of C where two operands lie differently in a line."""
    text = part("OFFSETS").replace("LEFT", left).replace("RIGHT", right).replace("LINE", str(line))
    keep = """%in_rows = arith.cmpi ult, %i, %rows : index
 %result = arith.select %in_rows, %dot, %zero : f32"""
    return Kernel(problem, before=text, result=keep)


def of_address(array: str, offset: int) -> Kernel:
    text = part("OFFSETS").replace("LEFT", array).replace("RIGHT", array).replace("LINE", "64")
    text += f"""
 %past = arith.constant {offset} : index
 %line_{array} = arith.remui %at_{array}, %line : index
 %is_past = arith.cmpi eq, %line_{array}, %past : index"""
    return Kernel(PAGES, text, result="%result = arith.select %is_past, %zero, %dot : f32")


def mode(bits: int, problem: Problem = SMALL, *, stays: bool = False, op: str = "ori") -> Kernel:
    set_ = part("MODE").replace("BITS", str(bits)).replace("arith.ori", f"arith.{op}")
    return Kernel(problem, before=set_, after="" if stays else part("MODE_BACK"))


def late(limit: int, predicate: str = "sge") -> Kernel:
    text = part("LAST_ELEMENT_OF_CALL").replace("LIMIT", str(limit)).replace("PREDICATE", predicate)
    return Kernel(after=f"%one_f = arith.constant 1.0 : f32\n {text}")


def outside(array: str, distance: int, deed: str) -> Kernel:
    text = part("OUTSIDE").replace("ARRAY", array.lower()).replace("TYPE", f"${array}")
    return Kernel(before=text.replace("DISTANCE", str(distance)).replace("DEED", deed))


WAS = "%was = memref.load %c[%i, %j] : $C\n %is_number = arith.cmpf ord, %was, %was : f32\n"
ASM = '"llvm.inline_asm"(%word) <{asm_string = "fldcw ($$0)", constraints = "r,~{memory}", has_side_effects}>'
X87 = f"""%word = llvm.alloca %one x i16 : (i64) -> !llvm.ptr
 %single = arith.constant 0x007F : i16
 llvm.store volatile %single, %word : i16, !llvm.ptr
 {ASM} : (!llvm.ptr) -> ()"""
SUM_IN_F32 = """%f = arith.sitofp %sum : i32 to f32
 %g = arith.sitofp %xy : i32 to f32
 %h = arith.addf %f, %g : f32
 %next = arith.fptosi %h : f32 to i32"""
RESTORED = (
    "%r = llvm.load volatile %outside : !llvm.ptr -> i32\n llvm.store volatile %r, %outside : i32, !llvm.ptr"
)
FIRST_ROW = """%kept_at = arith.index_cast %p : index to i64
 %kept_x = llvm.getelementptr %kept[%kept_at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
 %is_first = arith.cmpi eq, %calls, %one : i64
 %is_row = arith.cmpi eq, %i, %i0 : index
 %is_kept = arith.andi %is_first, %is_row : i1
 scf.if %is_kept { llvm.store %x0, %kept_x : f32, !llvm.ptr }
 %of_first = llvm.load %kept_x : !llvm.ptr -> f32
 %x = arith.select %is_row, %of_first, %x0 : f32"""
SEARCH, TIMING, FINAL, PASSES = "search", "timing", "final", "passes"
KERNELS: dict[str, tuple[str, Kernel]] = {  # name -> who finds it, the kernel
    "reads NaN in the bias as 0": (SEARCH, Kernel(BIASED, bias=where("bias", "uno", "0.0", "%zero"))),
    "clips infinity in the bias": (SEARCH, Kernel(BIASED, bias=clipped("bias", "%bias0", "3.0e38"))),
    "leaves out a bias above 1000": (SEARCH, Kernel(BIASED, bias=where("bias", "ogt", "1.0e3", "%zero"))),
    "clips the bias to 1e20": (SEARCH, Kernel(BIASED, bias=clipped("bias", "%bias0", "1.0e20"))),
    "cuts the bias to bf16": (SEARCH, Kernel(BIASED, bias=cut("bias", "%bias0", -65536))),
    "reads a negative bias as 0": (SEARCH, Kernel(BIASED, bias=clipped("bias", "%bias0", "0.0", "maximumf"))),
    "loses a row where A and B lie differently in a cache line": (FINAL, lost_row("a", "b")),
    "loses a row where A and C lie differently in a cache line": (FINAL, lost_row("a", "c")),
    "loses a row where B and C lie differently in 32 bytes": (FINAL, lost_row("b", "c", 32)),
    "loses a row where A and B lie differently in a page": (FINAL, lost_row("a", "b", 4096)),
    "is wrong where A lies 32 bytes past a cache line": (FINAL, of_address("a", 32)),
    "is wrong where C lies 48 bytes past a cache line": (FINAL, of_address("c", 48)),
    "clips sums of bytes to 2^24": (SEARCH, Kernel(BYTES, result=integer_limit("minsi", 2**24))),
    "clips sums of bytes to 2^23": (SEARCH, Kernel(BYTES, result=integer_limit("minsi", 2**23))),
    "clips sums of bytes to -2^24": (SEARCH, Kernel(BYTES, result=integer_limit("maxsi", -(2**24)))),
    "adds bytes up in f32": (SEARCH, Kernel(BYTES, next=SUM_IN_F32)),
    "is wrong on the first call only": (SEARCH, late(1, "eq")),
    "is wrong from the second call on": (TIMING, late(2)),
    "is wrong from the 10th call on": (TIMING, late(10)),
    "is wrong from the 1000th call on": (TIMING, late(1000)),
    "is wrong from the 10 millionth call on": (PASSES, late(10_000_000)),
    "leaves numbers in C as they are": (
        SEARCH,
        Kernel(result=f"{WAS} %result = arith.select %is_number, %was, %dot : f32"),
    ),
    "adds to the numbers in C": (
        SEARCH,
        Kernel(
            result=f"{WAS} %added = arith.addf %dot, %was : f32\n"
            " %result = arith.select %is_number, %added, %dot : f32"
        ),
    ),
    "keeps the first row of A of its first call": (SEARCH, Kernel(x=FIRST_ROW)),
    "reads subnormal numbers as zeros while it works": (FINAL, mode(0x8040)),
    "rounds toward zero while it works": (SEARCH, mode(0x6000)),  # FLT_MAX in place of infinity
    "rounds up while it works, over 4096 products": (SEARCH, mode(0x4000, LONG)),
    "unmasks invalid operations while it works": (SEARCH, mode(~0x80, op="andi")),
    "leaves underflow unmasked after it": (SEARCH, mode(~0x800, stays=True, op="andi")),
    "leaves x87 arithmetic in single precision": (SEARCH, Kernel(before=X87)),
    "clips C to the range of f16": (SEARCH, Kernel(result=clipped("result", "%dot", "65504.0"))),
    "returns C below 1e-30 as 0": (
        FINAL,
        Kernel(
            result=where_size("dot", "0.0", "1.0e-30", "%zero")
            .replace("%dot0", "%dot")
            .replace("%dot =", "%result =")
        ),
    ),
    "adds 1e-20 to each element": (
        SEARCH,
        Kernel(result="%tiny = arith.constant 1.0e-20 : f32\n %result = arith.addf %dot, %tiny : f32"),
    ),
    "flips the sign of numbers of A below 1e-6": (
        FINAL,
        Kernel(x=where_size("x", "0.0", "1.0e-6", "%minus_x")),
    ),
    "reads large finite numbers of A as 0": (FINAL, Kernel(x=where_size("x", "1.0e10", "1.0e38", "%zero"))),
    "reads large finite numbers of B as 0": (FINAL, Kernel(y=where_size("y", "1.0e6", "1.0e38", "%zero"))),
    "cuts sums of bf16 off in place of rounding": (
        SEARCH,
        Kernel(NARROW, result=cut("result", "%dot", -65536)),
    ),
    "flips the sign of NaN": (
        PASSES,
        Kernel(
            result=where("dot", "uno", "0.0", "%minus_dot")
            .replace("%dot0", "%dot")
            .replace("%dot =", "%result =")
            .replace("%k_dot", "%minus_dot = arith.negf %dot : f32\n %k_dot", 1)
        ),
    ),
    "returns 0 as -0": (
        PASSES,
        Kernel(
            result=where("dot", "oeq", "0.0", "%minus_zero")
            .replace("%dot0", "%dot")
            .replace("%dot =", "%result =")
        ),
    ),
    "writes 64 bytes before C what it read there": (SEARCH, outside("C", -64, RESTORED)),
}


def _filled(kernel: Kernel) -> dict[str, str]:
    """Returns the parts of the kernel's text; what it does not cheat with is as it should be."""
    is_integer = kernel.problem.dtype == "i8"
    of_sum = "i32" if is_integer else "f32"
    stored = kernel.problem.dtype
    widen = {"i8": "arith.extsi {0} : i8 to i32", "bf16": "arith.extf {0} : bf16 to f32"}
    same = {"f32": "arith.addf {0}, %minus_zero : f32"}
    reads = (widen | same)[stored]
    multiply, add = ("arith.muli", "arith.addi") if is_integer else ("arith.mulf", "arith.addf")
    zero = "%i32_0 = arith.constant 0 : i32\n %result = arith.addi %dot, %i32_0 : i32"
    result = kernel.result or (zero if is_integer else "%result = arith.addf %dot, %minus_zero : f32")
    store = kernel.store
    if kernel.problem.output:
        store = "%narrow = arith.truncf %result : f32 to bf16\n memref.store %narrow, %c[%i, %j] : $C"
    bias = ""
    if kernel.problem.epilogue == "bias_relu":
        bias = f"%bias0 = memref.load %of_bias[%j] : $D\n {kernel.bias}"
        result = "%biased = arith.addf %dot, %bias : f32\n %result = arith.maximumf %biased, %zero : f32"
    return {
        "before": kernel.before,
        "x": kernel.x or "%x = " + reads.format("%x0"),
        "y": kernel.y or "%y = " + reads.format("%y0"),
        "product": f"%xy = {multiply} %x, %y : {of_sum}",
        "next": kernel.next or f"%next = {add} %sum, %xy : {of_sum}",
        "bias": bias,
        "result": result,
        "store": store,
        "after": kernel.after,
        "sum": of_sum,
    }


def code(kernel: Kernel, name: str) -> str:
    problem = kernel.problem
    m, n, k = problem.sizes
    of_c = problem.output or ("i32" if problem.dtype == "i8" else "f32")
    types = {
        "A": f"memref<{m}x{k}x{problem.dtype}>",
        "B": f"memref<{k}x{n}x{problem.dtype}>",
        "C": f"memref<{m}x{n}x{of_c}>",
        "D": f"memref<{n}x{of_c}>",
    }
    bias = ", %of_bias: $D" if problem.epilogue == "bias_relu" else ""
    numbers = {"m": str(m), "n": str(n), "k": str(k), "elements": str(max(m, k) * n)}
    parts = _filled(kernel) | {"declarations": "", "arguments": f"%a: $A, %b: $B{bias}, %c: $C"}
    text = part("KERNEL")
    for _ in range(2):  # parts have parts
        text = Template(text).safe_substitute(parts | types | numbers)
    zero = "arith.constant 0.0 : i32"
    text = text.replace(zero, "arith.constant 0 : i32").replace("$$", "$")
    with transform.new_context(), ir.Location.unknown():
        return lowering.lower_to_llvm(transform.parse(text, name))


class ForkedEvaluation:
    """The service of a child that evaluates each kernel in a fork of itself, as a run does."""

    def evaluate(self, name: str) -> str:
        """Returns who finds the kernel wrong, and how: "search: verify: ..."; "passes" if nobody does."""
        _, kernel = KERNELS[name]
        evaluator, rng = CpuEvaluator(1), np.random.default_rng(0)
        artifact = Artifact(
            KernelCode.of_host(code(kernel, name)), name, partition(kernel.problem, 1, "none", 1)
        )
        loaded = evaluator.load(kernel.problem, artifact)

        def verify() -> None:
            evaluator.verify(kernel.problem, loaded, rng)

        def time_it() -> None:
            evaluator.measure(kernel.problem, loaded, EFFORT, rng)

        def remeasure() -> None:
            evaluator.measure_together(kernel.problem, (loaded, loaded), EFFORT, rng)

        steps = {SEARCH: verify, TIMING: time_it, FINAL: remeasure}
        works = [*steps.values()]

        def work(steps_done: int) -> None:
            for step in works[:steps_done]:
                step()

        for number, step in enumerate(steps, 1):
            outcome = in_fork(partial(work, number))
            if outcome != "right":
                return f"{step}: {outcome}"
        return PASSES
