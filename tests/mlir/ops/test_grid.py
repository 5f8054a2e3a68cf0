"""``tuner.split_k`` and ``tuner.swizzle_blocks``: launches and loops they make, and refuse."""

import re

import numpy as np
import pytest

from tests.mlir.kernels import parsed
from tests.mlir.ops.one_op import apply, line_of
from tests.texts import text_beside
from tuner.mlir.bindings import passmanager

SPLIT_K = '"tuner.split_k"(%func) {{slices = {0} : i64}} : (!transform.any_op) -> ()'
LOOP = """scf.for %k = %c0 to %c96 step %c8 {
        memref.store %zero, %c[%k] : memref<96xf32>
      }"""


def split_payload(body: str = LOOP, z: str = "%c1") -> str:
    return text_beside(__file__, "SPLIT_PAYLOAD").replace("BODY", body).replace("BLOCKS", z)


# ``tuner.swizzle_blocks``: every block once, in bands.
PAYLOAD = text_beside(__file__, "PAYLOAD")


def swizzle(group: int, **more: int | str) -> str:
    return line_of("swizzle_blocks", group=group, **more)


def clustered(group: int, cluster: tuple[int, int]) -> str:
    return swizzle(group, cluster_n=cluster[0], cluster_m=cluster[1])


def payload(columns: int, rows: int, size: str = "arith.constant {} : index") -> str:
    """Returns a kernel that stores its row and column, once as an op gives them and once as an argument."""
    return PAYLOAD.replace("COLUMNS", size.format(columns)).replace("ROWS", str(rows))


def places(text: str, columns: int, rows: int) -> list[tuple[int, int]]:
    """Returns (row, column) of every block in the order they start, by folding the kernel's arithmetic."""
    head, function = text.split("module {\n", 1)
    function = function.rstrip().removesuffix("}")
    fixed: list[str] = []
    for y, x in np.ndindex(rows, columns):
        one = function.replace("@f(", f"@f{len(fixed)}(")
        for dimension, number in (("x", x), ("y", y)):
            one = re.sub(rf"gpu\.block_id +{dimension}", f"arith.constant {number} : index", one)
        fixed.append(one)
    with parsed(f"{head}module {{\n{''.join(fixed)}}}") as module:
        passes = passmanager.PassManager.parse("builtin.module(canonicalize,lower-affine,canonicalize)")
        passes.run(module.operation)
        stored = [int(number) for number in re.findall(r"memref\.store %c(\d+)", str(module))]
    return list(zip(stored[1::2], stored[::2], strict=True))


@pytest.mark.parametrize(("columns", "rows", "group"), [(3, 4, 2), (2, 5, 2), (4, 3, 8), (5, 2, 1)])
def test_every_block_comes_once_and_bands_in_order(columns: int, rows: int, group: int) -> None:
    found = places(apply(swizzle(group), payload(columns, rows)), columns, rows)
    bands = [range(first, min(first + group, rows)) for first in range(0, rows, group)]
    assert found == [(row, column) for band in bands for column in range(columns) for row in band]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("columns", "rows", "group"), [(4, 3, 2), (5, 2, 2), (3, 4, 8)])
def test_bands_of_columns_are_those_of_rows_turned(columns: int, rows: int, group: int) -> None:
    found = places(apply(swizzle(group, bands="columns"), payload(columns, rows)), columns, rows)
    turned = places(apply(swizzle(group), payload(rows, columns)), rows, columns)
    assert found == [(column, row) for row, column in turned]


@pytest.mark.parametrize(
    ("columns", "rows", "group", "cluster"),
    [(4, 4, 2, (1, 2)), (3, 6, 4, (1, 2)), (4, 3, 2, (2, 1)), (2, 8, 4, (1, 2))],
)
def test_blocks_keep_their_place_in_their_cluster(
    columns: int, rows: int, group: int, cluster: tuple[int, int]
) -> None:
    found = places(apply(clustered(group, cluster), payload(columns, rows)), columns, rows)
    assert sorted(found) == [(row, column) for row in range(rows) for column in range(columns)]
    for number, (row, column) in enumerate(found):
        y, x = divmod(number, columns)
        first_row, first_column = found[y // cluster[1] * cluster[1] * columns + x // cluster[0] * cluster[0]]
        assert (row - first_row, column - first_column) == (y % cluster[1], x % cluster[0])
        assert first_row % cluster[1] == first_column % cluster[0] == 0
    assert {row for row, _ in found[: group * columns]} == set(range(group))


SHOWN = [(swizzle(2), payload(4, 4))]
BECOMES = {"split_k": (SPLIT_K.format(4), split_payload())}
VARIABLE = "arith.addi %any, %any : index"
CONSTANTS, ONE_OR_MORE = "allowed constants, from 0", "allowed constant grids and a group of 1 or more"
UNKNOWN_END, LATER_START = (split_payload(LOOP.replace(*each)) for each in (("%c96", "%any"), ("%c0", "%c8")))
REFUSED = [
    (SPLIT_K.format(2), split_payload(body=""), "found 0 loops in a launch, allowed 1"),
    (SPLIT_K.format(2), split_payload(body=LOOP + LOOP), "found 2 loops in a launch, allowed 1"),
    (SPLIT_K.format(2), split_payload(z="%c8"), "found a launch with more than one block along z"),
    (SPLIT_K.format(2), split_payload(z="%any"), "with more than one block along z, or not constant"),
    (SPLIT_K.format(2), UNKNOWN_END, f"a loop from 0 to None by 8, {CONSTANTS}"),
    (SPLIT_K.format(2), LATER_START, f"a loop from 8 to 96 by 8, {CONSTANTS}"),
    (SPLIT_K.format(5), split_payload(), "slices: found 5, allowed what divides 12 trips"),
    (SPLIT_K.format(0), split_payload(), "slices: found 0, allowed what divides 12 trips"),
    (swizzle(2, bands="blocks"), payload(2, 2), "bands: found blocks, allowed columns or rows"),
    (clustered(3, (1, 2)), payload(2, 4), r"found clusters of \(.*allowed whole ones"),
    (clustered(2, (2, 1)), payload(3, 4), r"found clusters of \(.*allowed whole ones"),
    (swizzle(0), payload(2, 2), f"found 1 launches, 1 of a constant grid, group 0.*{ONE_OR_MORE}"),
    (swizzle(2), payload(2, 2, VARIABLE), f"found 1 launches, 0 of a constant grid.*{ONE_OR_MORE}"),
    (swizzle(2), "func.func @f() { return }", f"found 0 launches.*{ONE_OR_MORE}"),
]
