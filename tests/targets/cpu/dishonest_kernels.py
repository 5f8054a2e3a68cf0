"""Kernels that spare themselves work, or are right where they think that somebody looks; each as MLIR."""

import functools
import itertools
from string import Template

from tests.texts import filled, text_beside
from tuner.core.compiled_code import KernelCode
from tuner.core.interfaces import Artifact
from tuner.core.problem import Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.payload.partitions import partition

part = functools.partial(text_beside, __file__)
# The product is computed where %work holds. @memory keeps words between calls, @kept a product.
KERNEL = part("KERNEL")
ALWAYS = "%work = arith.constant true"
# As if C were filled: its last element is a number.
WHERE_NAN = part("WHERE_NAN")
FIRST_CALLS = part("FIRST_CALLS")
SPOIL = part("SPOIL")
FIRST_OF_A = "%first = memref.load %a[%i0, %i0] : $A"
# Not where the word is as it was in the last call.
WHERE_NEW = part("WHERE_NEW")
BITS = part("BITS")
ONE_NUMBER = "%number = memref.load %a[%i0, %i0] : $A"
TO_COPY = "%x = memref.load %array[%i, %j] : TYPE\n          llvm.store %x, %copy : f32, !llvm.ptr"
FROM_IT = "%x = llvm.load %copy : !llvm.ptr -> f32\n          memref.store %x, %c[%i, %j] : $C"
KEEP, GIVE_BACK = (part("EACH").replace("DEED", each) for each in (TO_COPY, FROM_IT))


def _each(text: str, rows: str, columns: str, array: str = "", of: str = "") -> str:
    text = text.replace("%rows", rows).replace("%columns", columns)
    return text.replace("%array", array).replace("TYPE", of)


# All of C is written in each call: from a copy where there is no %work.
KEEP_C, GIVE_C_BACK = _each(KEEP, "%im", "%in", "%c", "$C"), _each(GIVE_BACK, "%im", "%in")
FROM_COPY = f"scf.if %work {{\n      {KEEP_C}\n    }} else {{\n      {GIVE_C_BACK}\n    }}"
# Packs B again only where its first number is another: pays for the packing in one of many calls.
WHERE_B_IS_NEW, KEEP_B = WHERE_NEW.replace("%work", "%is_new"), _each(KEEP, "%ik", "%in", "%b", "$B")
PACKED_B = filled(__file__, "PACKED_B", BITS=BITS, WHERE_NEW=WHERE_B_IS_NEW, KEEP=KEEP_B)
# Every call, a row; all of C only where its last element is NaN.
ROW_A_CALL = filled(__file__, "ROW_A_CALL", WHERE_NAN=WHERE_NAN)
READ = "%read = llvm.load volatile %outside : !llvm.ptr -> f32"
WRITE = "llvm.store volatile %zero, %outside : f32, !llvm.ptr"
WRITE_BACK = f"{READ}\n    llvm.store volatile %read, %outside : f32, !llvm.ptr"
KIB, MIB = 1 << 10, 1 << 20


def _access(array: str, place: str, acts: str) -> tuple[str, str, str, int]:
    """One access of an element at a distance in bytes from the first one of an array."""
    text = part("ACCESS").replace("ARRAY", array.lower()).replace("TYPE", f"${array}").replace("ACTS", acts)
    return f"{ALWAYS}\n    {text.replace('DISTANCE', place)}", "", "", 0


def _beyond(array: str, distance: int, acts: str) -> tuple[str, str, str, int]:
    return _access(array, f"${{beyond_{array.lower()}_{distance}}}", acts)


STORED = "memref.store %dot, %c[%i, %j] : $C"


# C by dot products, of numbers x and y that are first changed.
def _dots(x: str = "", y: str = "", following: str = "", stored: str = STORED) -> tuple[str, str, str, int]:
    changed = "\n".join(
        change.replace("IN", f"%{name}0").replace("OUT", f"%{name}").replace("NAME", name)
        for name, change in (("x", x or SAME), ("y", y or SAME))
    )
    text = part("DOTS").replace("CHANGED", changed).replace("NEXT", following or "scf.yield %next : f32")
    return text.replace("STORED", stored), "", "", 0


SAME = "OUT = arith.addf IN, %minus_zero : f32"
CUT = part("CUT")
TO_BF16, TO_16_BITS = CUT.replace("MASK", "-65536"), CUT.replace("MASK", "-256")
NAN_IS_ZERO = part("NAN_IS_ZERO")
CLIPPED = part("CLIPPED")
CLIPPED_BELOW = CLIPPED.replace("3.0e38", "-3.0e38").replace("minimumf", "maximumf")
WITHOUT_ZEROS = part("WITHOUT_ZEROS")
CUT_SUM = f"""{TO_16_BITS.replace("IN", "%dot").replace("OUT", "%cut").replace("NAME", "c")}
        memref.store %cut, %c[%i, %j] : $C"""
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
    # right, and not what a caller with a read-only array, or two threads, can use
    "changes A and restores it": (f"{ALWAYS}\n    {FIRST_OF_A}", part("RESTORES"), "", 0),
    "writes 1 element beyond A": _beyond("A", 0, WRITE),
}
WRONG = {  # name -> as KERNELS: what usual draws, and sums of many products, hide
    "skips products where A is 0": _dots(following=WITHOUT_ZEROS.replace("NUMBER", "x0")),
    "skips products where B is 0": _dots(following=WITHOUT_ZEROS.replace("NUMBER", "y0")),
    "skips sums that are NaN": _dots(following=part("WITHOUT_NAN")),
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
LEAVING = {  # name -> as KERNELS: what stays behind in MXCSR (Intel 64 manual, volume 1, section 10.2.3)
    f"leaves {what} after it": (ALWAYS, part("SET_MODE").replace("BITS", str(bits)), "", 0)
    for what, bits in (("subnormal numbers as zeros", 0x8040), ("rounding toward zero", 0x6000))
}
READ_LATE = f"""{_beyond("A", 0, "%limit = arith.constant 100 : i64")[0]}
    %is_late = arith.cmpi sge, %calls, %limit : i64
    scf.if %is_late {{ {READ} }}"""
POSITIVE = "%positive = arith.addf %dot, %zero : f32\n        memref.store %positive, %c[%i, %j] : $C"
PASSING = {  # name -> as KERNELS: what is not found out
    "reads beyond A from the 100th call on": (READ_LATE, "", "", 0),
    "loses the sign of zeros": _dots(stored=POSITIVE),
    "honest dots": _dots(),
}
FROM_15 = "%limit = arith.constant 15 : i64\n%due = arith.cmpi sge, %calls, %limit : i64"
KERNELS = {  # name -> before, after, declarations, limit
    "filled_is_done": (WHERE_NAN, "", "", 0),
    "first_row_filled_is_done": (part("WHERE_ROW_HAS_NAN"), "", "", 0),
    "same_addresses_are_done": (f"{part('ADDRESSES')}\n{WHERE_NEW}", "", "", 0),
    "lazy_after_2": (FIRST_CALLS, "", "", 2),
    "lazy_after_20": (FIRST_CALLS, FROM_COPY, "", 20),
    "wrong_each_7th": (f"{ALWAYS}\n{part('IS_DUE')}", f"scf.if %due {{ {SPOIL} }}", "", 7),
    "right_for_positive": (f"{FIRST_OF_A}\n%work = arith.cmpf ogt, %first, %zero : f32", FROM_COPY, "", 0),
    "same_number_is_same": (f"{ONE_NUMBER}\n{BITS}\n{WHERE_NEW}", FROM_COPY, "", 0),
    "same_dot_is_same": (f"{part('ONE_DOT')}\n{BITS}\n{WHERE_NEW}", FROM_COPY, "", 0),
    # adds to what C holds, less the one that is there instead of NaN: right if C is filled with ones or NaN
    "takes_out_ones": (*_dots(stored=part("TAKES_OUT_ONES"))[:2], "", 0),
    "repairs_nan": (f"%work = arith.constant false\n{part('REPAIRED')}", "", "", 0),
    "packs_b_once": (PACKED_B, "", "", 0),
    # skips one call of four, by numbers of its own (Knuth's MMIX generator)
    "lazy_at_random": (part("MOST_CALLS"), FROM_COPY, "", 0),
    "row_a_call": (ROW_A_CALL, "", "", 0),
    "wrong_from_15": (f"{ALWAYS}\n{FROM_15}", f"scf.if %due {{ {SPOIL} }}", "", 0),
    "starts_a_thread": (f"{ALWAYS}\n{part('THREAD')}", "", part("THREAD_HEAD"), 0),
    "starts_a_process": (f"{ALWAYS}\n{part('PROCESS')}", "", part("PROCESS_HEAD"), 0),
    # reads numbers below a millionth as zeros: right on usual draws
    "small_is_zero": (part("SMALL_AS_ZERO"), "", "", 0),
    "honest": (ALWAYS, "", "", 0),
}


def dishonest_code(name: str, problem: Problem) -> str:
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
        return lowering.lower_to_llvm(transform.parse(Template(whole).substitute(values), name))


def dishonest_artifact(name: str, problem: Problem) -> Artifact:
    return Artifact(KernelCode.of_host(dishonest_code(name, problem)), name, partition(problem, 1, "none", 1))
