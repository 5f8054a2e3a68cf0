"""``tuner.pack_weights``: weights read from panels; ``tuner.pack_by_rows``: loops exchanged; others stay."""

import functools

from tests.mlir.ops.one_op import apply
from tests.texts import text_beside

LINE = '"tuner.pack_weights"(%func) {columns = 48 : i64} : (!transform.any_op) -> ()'
# C = A W in panels of 48 columns of 100; the last four are padded to 16.
PAYLOAD = text_beside(__file__, "PAYLOAD")


def test_a_weight_is_packed_once() -> None:
    assert apply(f"{LINE}\n    {LINE}", PAYLOAD) == apply(LINE, PAYLOAD)


EXTRACT = "%x = tensor.extract %weight[%c0, %c0] : tensor<64x100xf32>\n  return %sums"
OTHER_WEIGHTS = (
    (" {tuner.weight}", "", "a weight that is computed anew at each call"),
    ("%c48 = arith.constant 48", "%c48 = arith.constant 32", "slices that no panel holds"),
    ("weight[0, 96] [64, 4]", "weight[0, 90] [64, 4]", "a slice between panels"),
    ("columns = 48", "columns = 32", "panels of other columns"),
    ("[64, 48] [1, 1]", "[64, 48] [1, 2]", "slices of every second column"),
    ("%zero = arith.constant 0.0", "%zero = arith.constant 1.0", "padding with other numbers"),
    ("return %sums", EXTRACT, "a weight that is read otherwise as well"),
    ("low[0, 0] high[0, 12]", "low[0, 12] high[0, 0]", "padding in front"),
)


# ``tuner.pack_by_rows``: which loops it exchanges, and which it leaves alone.
PACK_BY_ROWS = '"tuner.pack_by_rows"(%func) : (!transform.any_op) -> ()'
# Copies 64 columns of B at a time to panels of 32 rows; a mask leaves out the last columns.
COPIES = text_beside(__file__, "COPIES")
USE = "func.call @use(%packed) : (!packed) -> ()"


OTHER_LOOPS = (
    ("%i = %c0 to %c32 step %c1", "%i = %c0 to %c32 step %c4", "no loop over rows"),
    ("%j = %c0 to %c200 step %c64", "%j = %c0 to %c200 step %c1", "no loop over panels"),
    ("%i = %c0 to %c32", "%i = %panel to %c32", "a loop that begins where the outer one says"),
    ("%packed = memref.alloc() : !packed", "%packed = call @given() : () -> !packed", "an alias of B"),
    ("vector.transfer_read %b[%i, %j]", "vector.transfer_read %of_packed[%i, %c0]", "a read of the output"),
    ("vector.transfer_write %x", f"{USE}\n vector.transfer_write %x", "a call"),
    (f"    {USE}\n    return", "    return", "a loop that is not the last of the outer one"),
)


def other_loops(old: str, new: str) -> str:
    declared = "func.func private @use(!packed)"
    changes = [(old, new), (declared, f"{declared}\n  func.func private @given() -> !packed")]
    if "of_packed" in new:
        kind = "memref<32x64xf32>"
        view = f"%of_packed = memref.subview %packed[0, 0, 0] [1, 32, 64] [1, 1, 1] : !packed to {kind}"
        changes += [("    scf.for %j", f"    {view}\n    scf.for %j")]
        changes += [("{in_bounds = [false]} : !b", f"{{in_bounds = [false]}} : {kind}")]
    if new == "    return":
        changes += [("      }\n    }\n", f"      }}\n      {USE}\n    }}\n")]
    return functools.reduce(lambda text, change: text.replace(*change, 1), changes, COPIES)


BECOMES = {"pack_weights": (LINE, PAYLOAD), "pack_by_rows": (PACK_BY_ROWS, COPIES)}
BECOMES["pack_weights_one_panel"] = (LINE, text_beside(__file__, "ONE_PANEL"))
UNCHANGED = [
    *((LINE.replace(old, new), PAYLOAD.replace(old, new), why) for old, new, why in OTHER_WEIGHTS),
    *((PACK_BY_ROWS, other_loops(old, new), why) for old, new, why in OTHER_LOOPS),
]
REFUSED = [
    (LINE.replace("48", "0"), PAYLOAD, "columns: found 0, allowed 1 and more"),
    (LINE.replace("%func", "%root"), PAYLOAD, "target: found builtin.module, allowed func.func with a body"),
]
