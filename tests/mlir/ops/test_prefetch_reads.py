"""``tuner.prefetch_reads`` on a small function: what it inserts, where it does not, when it refuses."""

import operator
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.mlir.ops.one_op import apply, line_of
from tests.texts import text_beside
from tuner.mlir.ir.reading import walk

# Reads B, argument 1, directly and through a view, inside of a loop and outside; a buffer of its own as well.
PAYLOAD, PANELS, WRITES = (text_beside(__file__, name) for name in ("PAYLOAD", "PANELS", "WRITES"))


def line(**attributes: int) -> str:
    return line_of("prefetch_reads", **attributes)


@pytest.mark.parametrize(("width", "step", "count"), [(40, 16, 4), (40, 64, 2), (16, 16, 2), (1, 16, 1)])
def test_each_cache_line_of_a_vector_is_asked_for(width: int, step: int, count: int) -> None:
    """And the one that its end reaches."""
    payload = PAYLOAD.replace("vector<40xf32>", f"vector<{width}xf32>")
    payload = payload.replace("%view[%i, %c0]", "%own[%i, %c0]")
    payload = payload.replace(": !view, vector<16xf32>", ": memref<32x64xf32>, vector<16xf32>")
    assert apply(line(argument=1, line=step), payload).count("memref.prefetch") == count


def test_the_handle_stays_valid_and_a_script_may_go_on_after_a_refusal() -> None:
    once = apply(line(argument=1), PAYLOAD)
    twice = apply(f"{line(argument=1)}\n    {line(argument=1)}", PAYLOAD)
    assert twice.count("memref.prefetch") == 2 * once.count("memref.prefetch")
    assert "went_on" in apply(text_beside(__file__, "GUARDED"), PAYLOAD)


@dataclass(frozen=True)
class Panels:
    """Panels of a packed weight: rows of K by columns, and how the loops over them read."""

    depth: int
    columns: int
    unrolled: int  # rows of K that one iteration reads
    strips: int  # in the loop; one more comes after it


@pytest.mark.parametrize(
    "panels",
    [
        Panels(depth=8, columns=32, unrolled=1, strips=2),
        Panels(depth=8, columns=64, unrolled=4, strips=86),
        Panels(depth=12, columns=64, unrolled=4, strips=1),
        Panels(depth=64, columns=128, unrolled=4, strips=21),
        Panels(depth=40, columns=16, unrolled=2, strips=6),
        Panels(depth=1024, columns=64, unrolled=4, strips=6),
        Panels(depth=7, columns=8, unrolled=1, strips=5),
        Panels(depth=9, columns=48, unrolled=3, strips=10),
    ],
)
def test_all_strips_together_fetch_each_line_of_the_next_panel(panels: Panels) -> None:
    places = lines_fetched(apply(line(strips=panels.strips + 1), loops_over(panels)))
    fetched = Counter((panel, (row * panels.columns + column) // 16) for panel, row, column in places)
    first = {(1, number) for number in range(-(-panels.depth * panels.columns // 16))}
    assert first <= fetched.keys()
    beyond = {place for place in fetched if place[0] == 1} - first  # of an uneven share of the last strip
    assert len(beyond) <= -(-panels.columns // 16)
    iterations = (panels.strips + 1) * panels.depth // panels.unrolled
    shares = -(-panels.columns * panels.unrolled // (16 * (panels.strips + 1)))
    assert sum(count for place, count in fetched.items() if place[0] == 1) == iterations * shares


def test_seven_strips_share_lines_without_a_division_by_seven() -> None:
    """Which took three times as long as what the loop multiplies."""
    text = apply(line(strips=7), loops_over(Panels(depth=256, columns=64, unrolled=4, strips=6)))
    with parsed(text) as module:
        constants = {
            op.operands[1].owner.attributes["value"].value
            for op in walk(module.operation, "arith.divui")
            if op.operands[1].owner.name == "arith.constant"
        }
    assert all(number.bit_count() == 1 for number in constants)


def loops_over(panels: Panels) -> str:
    """Returns PANELS with other sizes."""
    reads = [
        f"%row{number} = arith.addi %k, %u{number} : index\n"
        f"%read{number} = vector.transfer_read %b[%panel, %row{number}, %c0], %zero {{in_bounds = [true]}}"
        f" : !b, vector<{panels.columns}xf32>\n"
        f"func.call @use(%read{number}) : (vector<{panels.columns}xf32>) -> ()"
        for number in range(panels.unrolled)
    ]
    offsets = [f"%u{number} = arith.constant {number} : index" for number in range(panels.unrolled)]
    sizes = {
        "depth": panels.depth,
        "columns": panels.columns,
        "unrolled": panels.unrolled,
        "rows": 2 * panels.strips,
        "offsets": "\n".join(offsets),
        "reads": "\n".join(reads),
    }
    return string.Template(text_beside(__file__, "SIZED_PANELS")).substitute(sizes)


def lines_fetched(text: str) -> Iterator[tuple[int, ...]]:
    """Runs the index arithmetic of a function; returns the element that each ``memref.prefetch`` names."""
    with parsed(text) as module:
        *_, function = module.body.operations
        yield from prefetches(function.regions[0].blocks[0], {})


def prefetches(block: Any, values: dict[Any, int]) -> Iterator[tuple[int, ...]]:
    arithmetic = {
        "arith.addi": operator.add,
        "arith.muli": operator.mul,
        "arith.divui": operator.floordiv,
        "arith.remui": operator.mod,
    }
    for op in block.operations:
        name = op.operation.name
        if name == "arith.constant" and "index" in str(op.results[0].type):
            values[op.results[0]] = op.attributes["value"].value
        elif name in arithmetic:
            left, right = op.operands
            values[op.results[0]] = arithmetic[name](values[left], values[right])
        elif name == "scf.for":
            first, end, step = (values[operand] for operand in list(op.operands)[:3])
            body = op.regions[0].blocks[0]
            for number in range(first, end, step):
                yield from prefetches(body, values | {body.arguments[0]: number})
        elif name == "memref.prefetch":
            yield tuple(values[operand] for operand in list(op.operands)[1:])


ON_ROOT = line().replace("%func", "%root")
BECOMES = {
    "prefetch_reads_defaults": (line(), PAYLOAD),
    "prefetch_reads_rows": (line(argument=1, rows=4, line=16), PAYLOAD),
    "prefetch_reads_columns": (line(argument=1, columns=64, line=32), PAYLOAD),
    "prefetch_reads_panels": (line(strips=3), PANELS),
    "prefetch_reads_written": (line(argument=1, rows=8, written=1), WRITES),
}
UNCHANGED = [
    (line(argument=0), PAYLOAD, "an argument that is not read"),
    (line(strips=2), PAYLOAD, "a function without packed weights"),
    (line(argument=1, rows=8), WRITES, "an argument that is only written"),
]
REFUSED = [
    (line(argument=7), PAYLOAD, r"found func\.func, allowed func\.func with argument 7$"),
    (ON_ROOT, PAYLOAD, r"found builtin\.module, allowed func\.func with argument 1$"),
]
