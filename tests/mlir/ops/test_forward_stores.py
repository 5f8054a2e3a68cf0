"""``tuner.forward_stores``: which writes reach their reads, and which are left alone."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import filled

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
    return filled(__file__, "FUNCTION", memory=memory, tile=TILE, further=further, lines="\n".join(body))


def counts(text: str) -> tuple[int, int]:
    """Returns how many reads and writes there are."""
    return text.count("vector.transfer_read"), text.count("vector.transfer_write")


def test_a_write_is_forwarded_and_dropped_where_it_is_overwritten(apply: Apply) -> None:
    text = apply(LINE, payload(*USUAL))
    assert counts(text) == (0, 2)
    zero = text.partition("dense<0.000000e+00> : vector<16x8xf32>")[0].rpartition(" = ")[0].split()[-1]
    assert f"arith.addf {zero}, %arg1" in text


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


def test_sums_are_read_once_and_written_once_in_each_iteration(apply: Apply) -> None:
    again = [
        read("%again", "%i", "%j"),
        f"%more = arith.addf %again, %x : {TILE}",
        write("%more", "%i", "%j"),
    ]
    body = "\n".join([read("%read", "%i", "%j"), ADD, write("%sum", "%i", "%j"), *again])
    text = apply(LINE, payload(USUAL[0], f"scf.for %k = %c0 to %n step %other {{\n{body}\n}}"))
    assert counts(text) == (1, 2)
    assert text.index("transfer_write") < text.index("scf.for") < text.index("transfer_read")


SHARED = "memref<64x64xf32, #gpu.address_space<workgroup>>"
PLACES = (("%i", "%j8"), ("%i16", "%j"), ("%i16", "%j8"))
NEXT_ROW = "%n16 = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%n]"
NEXT_COLUMN = "%c8 = affine.apply affine_map<() -> (8)>()"
# What a function does -> how many of its reads and writes stay.
IF = "scf.if %is {{\n{}\n}}".format
SEEN = IF(f"{read('%seen', '%i', '%j')}\nvector.print %seen : {TILE}")
OF_SHARED = (
    *(write("%zero", "%i", "%j", memory=SHARED), read("%read", "%i", "%j", memory=SHARED)),
    write("%read", "%i", "%j", memory=SHARED),
)


def grid(first: str, row: str, column: str, next_row: str, next_column: str) -> str:
    """Returns writes to two places, and a sum at the first."""
    writes = write("%zero", row, column), write("%x", next_row, next_column)
    return payload(first, *writes, read("%read", row, column), ADD, write("%sum", row, column))


# What a function does -> how many of its reads and writes stay.
COUNTED = {
    "writes next to a place do not end what is known of it": (
        payload(USUAL[0], *(write("%x", *place) for place in PLACES), *USUAL[2:]),
        (0, 4),
    ),
    "other threads write shared memory, too": (payload(*OF_SHARED, memory=SHARED), (1, 2)),
    "a block that may not run changes what is known": (
        payload(USUAL[0], IF(write("%x", "%i", "%j")), *USUAL[2:]),
        (1, 3),
    ),
    "a write is read before it is overwritten": (payload(USUAL[0], SEEN, write("%x", "%i", "%j")), (1, 2)),
    "places of one value and of sums with it": (grid(NEXT_ROW, "%n", "%j", "%n16", "%j"), (0, 2)),
    "places of constants": (grid(NEXT_COLUMN, "%c0", "%c0", "%c0", "%c8"), (0, 2)),
}


@pytest.mark.parametrize("what", COUNTED)
def test_reads_and_writes_stay_where(what: str, apply: Apply) -> None:
    text, expected = COUNTED[what]
    assert counts(apply(LINE, text)) == expected


SHOWN = [(LINE, payload(*USUAL))]
