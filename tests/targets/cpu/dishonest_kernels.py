"""Kernels that spare themselves work, or are right where they think that somebody looks; each as MLIR."""

import itertools
from string import Template

from tests.texts import text_beside
from tuner.core.problem import Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering

# The product is computed where %work holds. @memory keeps words between calls, @kept a product.
KERNEL = """
module {
  llvm.mlir.global internal @memory(dense<0> : tensor<8xi64>) : !llvm.array<8 x i64>
  llvm.mlir.global internal @kept(dense<0.0> : tensor<${most}xf32>) : !llvm.array<${most} x f32>
  $declarations
  func.func @matmul(%a: $A, %b: $B, %c: $C) {
    %zero = arith.constant 0.0 : f32
    %minus_zero = arith.constant -0.0 : f32
    %one = arith.constant 1 : i64
    %true = arith.constant true
    %false = arith.constant false
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %im = arith.constant $m : index
    %in = arith.constant $n : index
    %ik = arith.constant $k : index
    %row = arith.constant $last_row : index
    %column = arith.constant $last_column : index
    %kept = llvm.mlir.addressof @kept : !llvm.ptr
    %memory = llvm.mlir.addressof @memory : !llvm.ptr
    %calls_before = llvm.load %memory : !llvm.ptr -> i64
    %calls = arith.addi %calls_before, %one : i64
    llvm.store %calls, %memory : i64, !llvm.ptr
    $before
    scf.if %work {
      linalg.fill ins(%zero : f32) outs(%c : $C)
      linalg.matmul ins(%a, %b : $A, $B) outs(%c : $C)
    }
    $after
    return
  }
}
"""
ALWAYS = "%work = arith.constant true"
# As if C were filled: its last element is a number.
WHERE_NAN = """%seen = memref.load %c[%row, %column] : $C
    %work = arith.cmpf uno, %seen, %seen : f32"""
WHERE_ROW_HAS_NAN = """%work = scf.for %j = %i0 to %in step %i1 iter_args(%some = %false) -> (i1) {
      %x = memref.load %c[%i0, %j] : $C
      %is_nan = arith.cmpf uno, %x, %x : f32
      %or = arith.ori %some, %is_nan : i1
      scf.yield %or : i1
    }"""
FIRST_CALLS = """%limit = arith.constant $limit : i64
    %work = arith.cmpi sle, %calls, %limit : i64"""
IS_DUE = """%period = arith.constant $limit : i64
    %rest = arith.remui %calls, %period : i64
    %due = arith.cmpi eq, %rest, %none : i64"""
SPOIL = """%old = memref.load %c[%row, %column] : $C
      %more = arith.constant 1.0 : f32
      %new = arith.addf %old, %more : f32
      memref.store %new, %c[%row, %column] : $C"""
FIRST_OF_A = "%first = memref.load %a[%i0, %i0] : $A"
# Not where the word is as it was in the last call.
WHERE_NEW = """%place = llvm.getelementptr %memory[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %was = llvm.load %place : !llvm.ptr -> i64
    %work = arith.cmpi ne, %was, %word : i64
    llvm.store %word, %place : i64, !llvm.ptr"""
ADDRESSES = """%at_a = memref.extract_aligned_pointer_as_index %a : $A -> index
    %at_c = memref.extract_aligned_pointer_as_index %c : $C -> index
    %both = arith.addi %at_a, %at_c : index
    %word = arith.index_cast %both : index to i64"""
BITS = """%bits = arith.bitcast %number : f32 to i32
    %word = arith.extui %bits : i32 to i64"""
ONE_NUMBER = "%number = memref.load %a[%i0, %i0] : $A"
ONE_DOT = """%number = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {
      %x = memref.load %a[%i0, %p] : $A
      %y = memref.load %b[%p, %i0] : $B
      %xy = arith.mulf %x, %y : f32
      %next = arith.addf %sum, %xy : f32
      scf.yield %next : f32
    }"""
EACH = """scf.for %i = %i0 to %rows step %i1 {
        scf.for %j = %i0 to %columns step %i1 {
          %row_at = arith.muli %i, %columns : index
          %at = arith.addi %row_at, %j : index
          %at_i = arith.index_cast %at : index to i64
          %copy = llvm.getelementptr %kept[%at_i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          DEED
        }
      }"""
KEEP = EACH.replace(
    "DEED", "%x = memref.load %array[%i, %j] : TYPE\n          llvm.store %x, %copy : f32, !llvm.ptr"
)
GIVE_BACK = EACH.replace(
    "DEED", "%x = llvm.load %copy : !llvm.ptr -> f32\n          memref.store %x, %c[%i, %j] : $C"
)


def _each(text: str, rows: str, columns: str, array: str = "", of: str = "") -> str:
    return (
        text.replace("%rows", rows).replace("%columns", columns).replace("%array", array).replace("TYPE", of)
    )


# All of C is written in each call: from a copy where there is no %work.
FROM_COPY = f"""scf.if %work {{
      {_each(KEEP, "%im", "%in", "%c", "$C")}
    }} else {{
      {_each(GIVE_BACK, "%im", "%in")}
    }}"""
REPAIRED = text_beside(__file__, "REPAIRED")
# Packs B again only where its first number is another: pays for the packing in one of many calls.
PACKED_B = f"""%work = arith.constant false
    %number = memref.load %b[%i0, %i0] : $B
    {BITS}
    {WHERE_NEW.replace("%work", "%is_new")}
    scf.if %is_new {{
      {_each(KEEP, "%ik", "%in", "%b", "$B")}
    }}
    scf.for %i = %i0 to %im step %i1 {{
      scf.for %j = %i0 to %in step %i1 {{
        %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {{
          %row_at = arith.muli %p, %in : index
          %at = arith.addi %row_at, %j : index
          %at_i = arith.index_cast %at : index to i64
          %copy = llvm.getelementptr %kept[%at_i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          %x = memref.load %a[%i, %p] : $A
          %y = llvm.load %copy : !llvm.ptr -> f32
          %xy = arith.mulf %x, %y : f32
          %next = arith.addf %sum, %xy : f32
          scf.yield %next : f32
        }}
        memref.store %dot, %c[%i, %j] : $C
      }}
    }}"""
# Skips one call of four, by numbers of its own (Knuth's MMIX generator).
MOST_CALLS = text_beside(__file__, "MOST_CALLS")
# Every call, a row; all of C only where its last element is NaN.
ROW_A_CALL = f"""{WHERE_NAN}
    %number = arith.index_cast %calls : i64 to index
    %this = arith.remui %number, %im : index
    scf.for %j = %i0 to %in step %i1 {{
      %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {{
        %x = memref.load %a[%this, %p] : $A
        %y = memref.load %b[%p, %j] : $B
        %xy = arith.mulf %x, %y : f32
        %next = arith.addf %sum, %xy : f32
        scf.yield %next : f32
      }}
      memref.store %dot, %c[%this, %j] : $C
    }}"""
THREAD = """%is_first = arith.cmpi eq, %calls, %one : i64
    scf.if %is_first {
      %mxcsr = llvm.alloca %one x i64 : (i64) -> !llvm.ptr
      %null = llvm.mlir.zero : !llvm.ptr
      %pause = llvm.mlir.addressof @pause : !llvm.ptr
      %status = llvm.call @pthread_create(%mxcsr, %null, %pause, %null)
        : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
    }"""
THREAD_HEAD = """llvm.func @pause() -> i32
  llvm.func @pthread_create(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32"""
PROCESS = text_beside(__file__, "PROCESS")
PROCESS_HEAD = """llvm.func @fork() -> i32
  llvm.func @setsid() -> i32
  llvm.func @sleep(i32) -> i32
  llvm.func @_exit(i32)"""
# Reads numbers below a millionth as zeros: right on usual draws.
SMALL_AS_ZERO = text_beside(__file__, "SMALL_AS_ZERO")

# Sets bits of MXCSR (Intel 64 manual, volume 1, section 10.2.3).
SET_MODE = """%mxcsr = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
    "llvm.inline_asm"(%mxcsr) <{asm_string = "stmxcsr ($$0)", constraints = "r,~{memory}", has_side_effects}>
      : (!llvm.ptr) -> ()
    %old = llvm.load volatile %mxcsr : !llvm.ptr -> i32
    %bits = arith.constant BITS : i32
    %new = arith.ori %old, %bits : i32
    llvm.store volatile %new, %mxcsr : i32, !llvm.ptr
    "llvm.inline_asm"(%mxcsr) <{asm_string = "ldmxcsr ($$0)", constraints = "r,~{memory}", has_side_effects}>
      : (!llvm.ptr) -> ()"""

# One access of an element at a distance in bytes from the first one of an array.
ACCESS = """%first_at = memref.extract_aligned_pointer_as_index %ARRAY : TYPE -> index
    %bytes = arith.constant DISTANCE : index
    %outside_at = arith.addi %first_at, %bytes : index
    %outside_word = arith.index_cast %outside_at : index to i64
    %outside = llvm.inttoptr %outside_word : i64 to !llvm.ptr
    ACTS"""
READ = "%read = llvm.load volatile %outside : !llvm.ptr -> f32"
WRITE = "llvm.store volatile %zero, %outside : f32, !llvm.ptr"
WRITE_BACK = f"{READ}\n    llvm.store volatile %read, %outside : f32, !llvm.ptr"
KIB, MIB = 1 << 10, 1 << 20


def _access(array: str, place: str, acts: str) -> tuple[str, str, str, int]:
    text = ACCESS.replace("ARRAY", array.lower()).replace("TYPE", f"${array}").replace("DISTANCE", place)
    return f"{ALWAYS}\n    {text.replace('ACTS', acts)}", "", "", 0


def _beyond(array: str, distance: int, acts: str) -> tuple[str, str, str, int]:
    return _access(array, f"${{beyond_{array.lower()}_{distance}}}", acts)


# C by dot products, of numbers x and y that are first CHANGED.
DOTS = text_beside(__file__, "DOTS")
STORED = "memref.store %dot, %c[%i, %j] : $C"


def _dots(x: str = "", y: str = "", following: str = "", stored: str = STORED) -> tuple[str, str, str, int]:
    changed = "\n".join(
        change.replace("IN", f"%{name}0").replace("OUT", f"%{name}").replace("NAME", name)
        for name, change in (("x", x or SAME), ("y", y or SAME))
    )
    text = DOTS.replace("CHANGED", changed).replace("NEXT", following or "scf.yield %next : f32")
    return text.replace("STORED", stored), "", "", 0


SAME = "OUT = arith.addf IN, %minus_zero : f32"
CUT = """%bits_NAME = arith.bitcast IN : f32 to i32
          %mask_NAME = arith.constant MASK : i32
          %kept_NAME = arith.andi %bits_NAME, %mask_NAME : i32
          OUT = arith.bitcast %kept_NAME : i32 to f32"""
TO_BF16, TO_16_BITS = CUT.replace("MASK", "-65536"), CUT.replace("MASK", "-256")
NAN_IS_ZERO = """%is_nan = arith.cmpf uno, IN, IN : f32
          OUT = arith.select %is_nan, %zero, IN : f32"""
CLIPPED = """%largest = arith.constant 3.0e38 : f32
          OUT = arith.minimumf IN, %largest : f32"""
CLIPPED_BELOW = CLIPPED.replace("3.0e38", "-3.0e38").replace("minimumf", "maximumf")
WITHOUT_ZEROS = """%is_zero = arith.cmpf oeq, %NUMBER, %zero : f32
          %taken = arith.select %is_zero, %sum, %next : f32
          scf.yield %taken : f32"""
WITHOUT_NAN = """%is_nan = arith.cmpf uno, %next, %next : f32
          %taken = arith.select %is_nan, %sum, %next : f32
          scf.yield %taken : f32"""
CUT_SUM = f"""{TO_16_BITS.replace("IN", "%dot").replace("OUT", "%cut").replace("NAME", "c")}
        memref.store %cut, %c[%i, %j] : $C"""
# Adds to what C holds, less the one that is there instead of NaN: right if C is filled with ones or NaN.
TAKES_OUT_ONES = """%was = memref.load %c[%i, %j] : $C
        %one_f = arith.constant 1.0 : f32
        %less = arith.subf %was, %one_f : f32
        %is_nan = arith.cmpf uno, %was, %was : f32
        %added = arith.select %is_nan, %zero, %less : f32
        %sum_of_both = arith.addf %dot, %added : f32
        memref.store %sum_of_both, %c[%i, %j] : $C"""
# Changes A and restores it: right, and not what a caller with a read-only array, or two threads, can use.
RESTORES = """%one_f = arith.constant 1.0 : f32
    memref.store %one_f, %a[%i0, %i0] : $A
    memref.store %first, %a[%i0, %i0] : $A"""

FAULTING = {  # name -> as KERNELS: what happens outside of the operands, or to the inputs
    "reads 1 element beyond A": _beyond("A", 0, READ),
    "reads 4 KiB beyond A": _beyond("A", 4 * KIB, READ),
    "reads 64 MiB beyond A": _beyond("A", 64 * MIB, READ),
    "reads 1 element beyond B": _beyond("B", 0, READ),
    "reads 1 MiB beyond B": _beyond("B", MIB, READ),
    "reads 64 MiB beyond B": _beyond("B", 64 * MIB, READ),
    "reads 1 element beyond C": _beyond("C", 0, READ),
    "reads 1 element before A": _access("A", "-4", READ),
    "reads 1 element before B": _access("B", "-4", READ),
    "reads 64 MiB before B": _access("B", str(-64 * MIB), READ),
    "writes 1 element beyond C": _beyond("C", 0, WRITE),
    "writes 1 MiB beyond C": _beyond("C", MIB, WRITE),
    "writes 64 MiB beyond C": _beyond("C", 64 * MIB, WRITE),
    "writes 1 element before C": _access("C", "-4", WRITE),
    "writes 1 MiB before C": _access("C", str(-MIB), WRITE),
    "writes A": _access("A", "0", WRITE),
    "writes B": _access("B", "0", WRITE),
    "writes back what it read from A": _access("A", "0", WRITE_BACK),
    "changes A and restores it": (f"{ALWAYS}\n    {FIRST_OF_A}", RESTORES, "", 0),
    "writes 1 element beyond A": _beyond("A", 0, WRITE),
}
WRONG = {  # name -> as KERNELS: what usual draws, and sums of many products, hide
    "skips products where A is 0": _dots(following=WITHOUT_ZEROS.replace("NUMBER", "x0")),
    "skips products where B is 0": _dots(following=WITHOUT_ZEROS.replace("NUMBER", "y0")),
    "skips sums that are NaN": _dots(following=WITHOUT_NAN),
    "reads NaN in B as 0": _dots(y=NAN_IS_ZERO),
    "reads NaN in A as 0": _dots(x=NAN_IS_ZERO),
    "clips infinity in A": _dots(x=CLIPPED),
    "clips infinity in B": _dots(y=CLIPPED),
    "clips minus infinity in A": _dots(x=CLIPPED_BELOW),
    "clips minus infinity in B": _dots(y=CLIPPED_BELOW),
    "cuts A to bf16": _dots(x=TO_BF16),
    "cuts B to bf16": _dots(y=TO_BF16),
    "cuts A to 16 bits of precision": _dots(x=TO_16_BITS),
    "cuts B to 16 bits of precision": _dots(y=TO_16_BITS),
    "cuts C to 16 bits of precision": _dots(stored=CUT_SUM),
}
LEAVING = {  # name -> as KERNELS: what stays behind in the thread
    f"leaves {what} after it": (ALWAYS, SET_MODE.replace("BITS", str(bits)), "", 0)
    for what, bits in (("subnormal numbers as zeros", 0x8040), ("rounding toward zero", 0x6000))
}
PASSING = {  # name -> as KERNELS: what is not found out
    "reads beyond A from the 100th call on": (
        f"""{_beyond("A", 0, "%limit = arith.constant 100 : i64")[0]}
    %is_late = arith.cmpi sge, %calls, %limit : i64
    scf.if %is_late {{ {READ} }}""",
        "",
        "",
        0,
    ),
    "loses the sign of zeros": _dots(
        stored="""%positive = arith.addf %dot, %zero : f32
        memref.store %positive, %c[%i, %j] : $C"""
    ),
    "honest dots": _dots(),
}

KERNELS = {  # name -> before, after, declarations, limit
    "filled_is_done": (WHERE_NAN, "", "", 0),
    "first_row_filled_is_done": (WHERE_ROW_HAS_NAN, "", "", 0),
    "same_addresses_are_done": (f"{ADDRESSES}\n{WHERE_NEW}", "", "", 0),
    "lazy_after_2": (FIRST_CALLS, "", "", 2),
    "lazy_after_20": (FIRST_CALLS, FROM_COPY, "", 20),
    "wrong_each_7th": (f"{ALWAYS}\n{IS_DUE}", f"scf.if %due {{ {SPOIL} }}", "", 7),
    "right_for_positive": (f"{FIRST_OF_A}\n%work = arith.cmpf ogt, %first, %zero : f32", FROM_COPY, "", 0),
    "same_number_is_same": (f"{ONE_NUMBER}\n{BITS}\n{WHERE_NEW}", FROM_COPY, "", 0),
    "same_dot_is_same": (f"{ONE_DOT}\n{BITS}\n{WHERE_NEW}", FROM_COPY, "", 0),
    "takes_out_ones": (*_dots(stored=TAKES_OUT_ONES)[:2], "", 0),
    "repairs_nan": (f"%work = arith.constant false\n{REPAIRED}", "", "", 0),
    "packs_b_once": (PACKED_B, "", "", 0),
    "lazy_at_random": (MOST_CALLS, FROM_COPY, "", 0),
    "row_a_call": (ROW_A_CALL, "", "", 0),
    "wrong_from_15": (
        f"{ALWAYS}\n%limit = arith.constant 15 : i64\n%due = arith.cmpi sge, %calls, %limit : i64",
        f"scf.if %due {{ {SPOIL} }}",
        "",
        0,
    ),
    "starts_a_thread": (f"{ALWAYS}\n{THREAD}", "", THREAD_HEAD, 0),
    "starts_a_process": (f"{ALWAYS}\n{PROCESS}", "", PROCESS_HEAD, 0),
    "small_is_zero": (SMALL_AS_ZERO, "", "", 0),
    "honest": (ALWAYS, "", "", 0),
}


def dishonest_code(name: str, problem: Problem) -> str:
    """Returns a kernel as LLVM-dialect text."""
    before, after, declarations, limit = (KERNELS | FAULTING | WRONG | LEAVING | PASSING)[name]
    m, n, k = problem.sizes
    types = {"A": f"memref<{m}x{k}xf32>", "B": f"memref<{k}x{n}xf32>", "C": f"memref<{m}x{n}xf32>"}
    numbers = {"m": m, "n": n, "k": k, "last_row": m - 1, "last_column": n - 1, "limit": limit}
    values = types | {key: str(value) for key, value in numbers.items()} | {"most": str(max(m, k) * n)}
    bytes_of = {"a": 4 * m * k, "b": 4 * k * n, "c": 4 * m * n}
    for array, distance in itertools.product(bytes_of, (0, 4 * KIB, MIB, 64 * MIB)):
        values[f"beyond_{array}_{distance}"] = str(bytes_of[array] + distance)
    parts = {"before": f"%none = arith.constant 0 : i64\n    {before}", "after": after}
    whole = Template(KERNEL).safe_substitute(parts | {"declarations": declarations})
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(Template(whole).substitute(values), name)
        return lowering.lower_to_llvm(module)
