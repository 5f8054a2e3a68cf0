"""``tuner.set_aside_groups``: a product of all rows in place of a loop over groups; marked arguments."""

from tuner.core.matmul import GroupedMatmul
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import Scratch

LINE = '"tuner.set_aside_groups"(%func) : (!transform.any_op) -> ()'


def payload(output: str = "") -> str:
    problem = GroupedMatmul(3, 50, 40, 60, output=output)
    return gpu_payload_mlir(problem, Scratch()).replace("@matmul(", "@f(")


PAYLOAD = payload()
BY_TWO = PAYLOAD.replace("%none to %groups step %one", "%none to %groups step %groups")
OF_TWO = PAYLOAD.replace("%groups = arith.constant 3", "%groups = arith.constant 2")
NEXT_MATRIX = PAYLOAD.replace("%b[%group, 0, 0]", "%b[%next, 0, 0]")
FROM_END = PAYLOAD.replace("%a[%first, 0]", "%a[%end, 0]")
ALL_ROWS = PAYLOAD.replace("arith.subi %end, %first", "arith.addi %end, %first")
APART = PAYLOAD.replace("%next = arith.addi %group, %one", "%next = arith.addi %group, %groups")
OF_COPY = PAYLOAD.replace("subview %a[", "subview %copy[").replace(
    "%next =", "%copy = memref.alloc() : memref<50x60xbf16>\n%next ="
)
VIEW = "memref.subview %a[%first, 0] [%count, 60] [1, 1] : memref<50x60xbf16>"
TWICE = PAYLOAD.replace("%A =", f"%more = {VIEW} to memref<?x60xbf16, strided<[60, 1], offset: ?>>\n%A =")
ONE_MATRIX = PAYLOAD.replace(
    "memref.subview %b[%group, 0, 0] [1, 60, 40] [1, 1, 1]",
    "memref.reinterpret_cast %b to offset: [%group], sizes: [60, 40], strides: [40, 1]",
)
BECOMES = {
    "set_aside_groups": (LINE, PAYLOAD),
    "set_aside_groups_rounded": (LINE, payload("bf16")),
}
NO_LOOP = "found no loop from 0 to a constant number of groups, or several"
OTHER_ROWS = "found another part of memref<50x60xbf16>, allowed the rows or the matrix of a group"
REFUSED = [
    (LINE, BY_TWO, NO_LOOP),
    (LINE, OF_TWO, "found a loop over 2 groups, allowed one for each matrix"),
    (LINE, NEXT_MATRIX, "found another part of memref<3x60x40xbf16>, allowed the rows or the matrix"),
    (LINE, FROM_END, OTHER_ROWS),
    (LINE, ALL_ROWS, f"{OTHER_ROWS}(?# a sum in place of a difference)"),
    (LINE, APART, f"{OTHER_ROWS}(?# the end of another group)"),
    (LINE, OF_COPY, "found a part of memref<50x60xbf16>, allowed parts of arguments"),
    (LINE, TWICE, "found two arguments with the rows of a group, allowed one"),
    (LINE, ONE_MATRIX, "found offsets, rows, results of groups, allowed rows, matrices, offsets and results"),
]
