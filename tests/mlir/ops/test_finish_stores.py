"""``tuner.finish_stores``: width, bounds, epilogue, atomics and slices of stores to C."""

import pytest

from tests.mlir.ops.one_op import apply
from tests.texts import filled, text_beside

LINE = '"tuner.finish_stores"(%func) {{mode = "{0}", slices = 3 : i64}} : (!transform.any_op) -> ()'
EPILOGUE = text_beside(__file__, "EPILOGUE")


def payload(row: int = 62, bounds: str = "50, 62", epilogue: str = "", store: str = "vector.store") -> str:
    """Returns a store of four elements of C (64 x 64, true sizes ``bounds``)."""
    c = f"memref<64x64xf32, strided<[{row}, 1]>>"
    types = f"vector<4xf32>, {c}" if store == "vector.transfer_write" else f"{c}, vector<4xf32>"
    return filled(__file__, "STORE", c=c, bounds=bounds, store=store, types=types, epilogue=epilogue)


EXCHANGE = """"tuner.finish_stores"(%func) {exchange = 1 : i64} : (!transform.any_op) -> ()"""
TO_F16 = text_beside(__file__, "TO_F16")


def pieces(tiles: int, row: int = 64, bounds: str = "50, 64", epilogue: str = "") -> str:
    c = f"memref<64x64xf32, strided<[{row}, 1]>>"
    each = "%jT = affine.apply affine_map<()[s0] -> (s0 * 2 + OFFSET)>()[%j]\n"
    each += f"    vector.store %sums, %c[%i, %jT] : {c}, vector<2xf32>"
    numbers = reversed(range(tiles))
    stores = "\n    ".join(each.replace("%jT", f"%j{one}").replace("OFFSET", str(8 * one)) for one in numbers)
    return filled(__file__, "PIECES", c=c, bounds=bounds, stores=stores, epilogue=epilogue)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (pieces(2, bounds="64, 60"), "columns end within a tile"),
        (pieces(2, row=66), "rows begin at multiples of 8 bytes"),
        (pieces(3, epilogue=TO_F16), "16 bits take four tiles"),
        (payload(row=64, bounds="64, 64"), "vectors of four"),
    ],
)
def test_what_cannot_be_exchanged_is_stored_as_before(text: str, why: str) -> None:
    assert apply(EXCHANGE, text) == apply(LINE.format("store"), text), why


SECOND = """vector.store %sums, %scale[%i] : memref<64xf32>, vector<4xf32>
    vector.store"""
BECOMES = {
    "finish_stores_guarded": (LINE.format("store"), payload()),
    "finish_stores_whole": (LINE.format("store"), payload(row=64, bounds="64, 64")),
    "finish_stores_of_two": (LINE.format("store"), payload(store=SECOND)),
    "finish_stores_narrow": (LINE.format("store"), payload(row=61, bounds="64, 61")),
    "finish_stores_epilogue": (LINE.format("store"), payload(row=64, bounds="50, 64", epilogue=EPILOGUE)),
    "finish_stores_atomic": (LINE.format("atomic"), payload(row=64, bounds="64, 64")),
    "finish_stores_atomic_guarded": (LINE.format("atomic"), payload()),
    "finish_stores_workspace": (LINE.format("workspace"), payload(row=64, bounds="64, 64")),
    "finish_stores_exchange_f32": (EXCHANGE, pieces(3)),
    "finish_stores_exchange_f16": (EXCHANGE, pieces(4, bounds="64, 64", epilogue=TO_F16)),
}
ROWS_OF_62 = r"memref<64x64xf32, strided<\[62, 1\]>>"
REFUSED = [
    (LINE.format("add"), payload(), "mode: found 'add', allowed store, atomic, workspace"),
    (LINE.format("store"), payload(store="//"), "found 0 stores to 0 arguments, allowed some, all to one"),
    (
        LINE.format("atomic"),
        payload(store=SECOND),
        "found 2 stores to 2 arguments, allowed some, all to one, or in mode store without an epilogue",
    ),
    (
        LINE.format("store"),
        payload(store=SECOND, epilogue=EPILOGUE),
        "found 2 stores to 2 arguments, allowed",
    ),
    (LINE.format("atomic"), payload(epilogue=EPILOGUE), "found 'atomic' and an epilogue, allowed store"),
    (LINE.format("workspace"), payload(), rf"workspace: expected whole tiles, got {ROWS_OF_62}"),
    (LINE.format("store"), payload(store="vector.transfer_write"), r"vector\.transfer_write to an argument"),
]
