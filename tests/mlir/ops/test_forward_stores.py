"""``tuner.forward_stores``: which writes reach their reads, and which are left alone."""

import pytest

from tests.mlir.ops.conftest import Apply

pytestmark = pytest.mark.mlir

LINE = '"tuner.forward_stores"(%func) : (!transform.any_op) -> ()'
TILE, C = "vector<16x8xf32>", "memref<64x64xf32>"


def write(what: str, row: str, column: str, kind: str = TILE, memory: str = C) -> str:
    return (
        f"vector.transfer_write {what}, %c[{row}, {column}] {{in_bounds = [true, true]}} : {kind}, {memory}"
    )


def read(name: str, row: str, column: str, kind: str = TILE, memory: str = C) -> str:
    place = f"%c[{row}, {column}], %any {{in_bounds = [true, true]}}"
    return f"{name} = vector.transfer_read {place} : {memory}, {kind}"


ADD = f"%sum = arith.addf %read, %x : {TILE}"
USUAL = (
    write("%zero", "%i", "%j"),
    write("%zero", "%i", "%j8"),
    read("%read", "%i", "%j"),
    ADD,
    write("%sum", "%i", "%j"),
)


def payload(*body: str, memory: str = C) -> str:
    """Returns a function of C; %j4 is 4 columns beyond %j, %i16 is 16 rows beyond %i."""
    further = "\n".join(f"%j{by} = affine.apply affine_map<()[s0] -> (s0 * 8 + {by})>()[%n]" for by in (4, 8))
    lines = "\n".join(body)
    return f"""
func.func @f(%c: {memory}, %x: {TILE}, %n: index, %other: index, %is: i1) {{
  %c0 = arith.constant 0 : index
  %any = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : {TILE}
  %wide = arith.constant dense<0.0> : vector<16x16xf32>
  %i = affine.apply affine_map<()[s0] -> (s0 * 16)>()[%n]
  %i16 = affine.apply affine_map<()[s0] -> (s0 * 16 + 16)>()[%n]
  %j = affine.apply affine_map<()[s0] -> (s0 * 8)>()[%n]
  {further}
  {lines}
  return
}}
"""


def counts(text: str) -> tuple[int, int]:
    """Returns how many reads and writes there are."""
    return text.count("vector.transfer_read"), text.count("vector.transfer_write")


def test_a_write_is_forwarded_and_dropped_where_it_is_overwritten(apply: Apply) -> None:
    text = apply(LINE, payload(*USUAL))
    assert counts(text) == (0, 2)
    zero = text.partition("dense<0.000000e+00> : vector<16x8xf32>")[0].rpartition(" = ")[0].split()[-1]
    assert f"arith.addf {zero}, %arg1" in text


def test_writes_next_to_a_place_do_not_end_what_is_known_of_it(apply: Apply) -> None:
    surrounding = [write("%x", *place) for place in (("%i", "%j8"), ("%i16", "%j"), ("%i16", "%j8"))]
    text = apply(LINE, payload(write("%zero", "%i", "%j"), *surrounding, *USUAL[2:]))
    assert counts(text) == (0, 4)


@pytest.mark.parametrize(
    "other",
    [
        write("%x", "%i", "%j4"),  # half of the place
        write("%x", "%i", "%other"),  # anywhere
        write("%wide", "%i", "%j8", "vector<16x16xf32>"),
        "func.call @unknown(%c) : (memref<64x64xf32>) -> ()",
        "%v = memref.subview %c[0, 0] [8, 8] [1, 1] : memref<64x64xf32> to memref<8x8xf32, strided<[64, 1]>>",
        f"vector.transfer_write %x, %c[%i, %j] {{in_bounds = [true, false]}} : {TILE}, {C}",
        f"vector.transfer_write %zero, %c[%i, %j], %mask {{in_bounds = [true, true]}} : {TILE}, {C}",
    ],
)
def test_what_is_no_grid_of_vectors_stays(other: str, apply: Apply) -> None:
    mask = "%mask = arith.constant dense<true> : vector<16x8xi1>"
    module = "func.func private @unknown(memref<64x64xf32>)" + payload(mask, USUAL[0], other, *USUAL[1:])
    assert counts(apply(LINE, module))[0] == 1


def test_shared_memory_stays_for_other_threads_write_it_too(apply: Apply) -> None:
    memory = "memref<64x64xf32, #gpu.address_space<workgroup>>"
    lines = [
        write("%zero", "%i", "%j", memory=memory),
        read("%read", "%i", "%j", memory=memory),
        write("%read", "%i", "%j", memory=memory),
    ]
    assert counts(apply(LINE, payload(*lines, memory=memory))) == (1, 2)


def test_a_block_that_may_not_run_or_runs_often_changes_what_is_known(apply: Apply) -> None:
    branch = "scf.if %is {\n" + write("%x", "%i", "%j") + "\n}"
    text = apply(LINE, payload(USUAL[0], branch, read("%read", "%i", "%j"), ADD, USUAL[-1]))
    assert counts(text) == (1, 3)


def test_sums_are_read_once_and_written_once_in_each_iteration(apply: Apply) -> None:
    again = [
        read("%again", "%i", "%j"),
        f"%more = arith.addf %again, %x : {TILE}",
        write("%more", "%i", "%j"),
    ]
    body = "\n".join([read("%read", "%i", "%j"), ADD, write("%sum", "%i", "%j"), *again])
    loop = f"scf.for %k = %c0 to %n step %other {{\n{body}\n}}"
    text = apply(LINE, payload(USUAL[0], loop))
    assert counts(text) == (1, 2)
    assert text.index("transfer_write") < text.index("scf.for") < text.index("transfer_read")


def test_a_write_that_was_read_before_it_is_overwritten_stays(apply: Apply) -> None:
    inner = "\n".join(["scf.if %is {", read("%seen", "%i", "%j"), f"vector.print %seen : {TILE}", "}"])
    assert counts(apply(LINE, payload(USUAL[0], inner, write("%x", "%i", "%j")))) == (1, 2)


def test_places_of_one_value_and_of_sums_with_it_are_one_grid(apply: Apply) -> None:
    rows = "%n16 = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%n]"
    lines = [write("%zero", "%n", "%j"), write("%x", "%n16", "%j"), read("%read", "%n", "%j"), ADD]
    assert counts(apply(LINE, payload(rows, *lines, write("%sum", "%n", "%j")))) == (0, 2)


def test_places_of_constants_are_one_grid(apply: Apply) -> None:
    column = "%c8 = affine.apply affine_map<() -> (8)>()"
    lines = [write("%zero", "%c0", "%c0"), write("%x", "%c0", "%c8"), read("%read", "%c0", "%c0"), ADD]
    assert counts(apply(LINE, payload(column, *lines, write("%sum", "%c0", "%c0")))) == (0, 2)


SHOWN = LINE, payload(*USUAL)
