"""``--compare`` of programs whose threads work together: PTX on the simulator against interpreted IR."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.programs.comparison import compare, outputs
from tuner.programs.execution import copies

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.interpreter.kernels")

SIMULATOR = TargetName.parse("simulator:sm_90")


@dataclass(frozen=True)
class SharedProgram:
    """A program of arrays, the last of which is written; threads wait for one another, and share memory."""

    name: str
    text: str
    shapes: tuple[tuple[int, ...], ...]
    expected: Callable[..., Any]  # of the arrays before: the last of them after
    mutations: tuple[tuple[str, str], ...]  # (text, what stands there instead) that change what it computes
    dtype: Any = np.float32  # of the last array

    def arguments(self) -> tuple[Any, ...]:
        """Returns small whole numbers, whose sums are exact."""
        rng = np.random.default_rng(0)
        *first, last = (rng.integers(1, 8, shape).astype(np.float32) for shape in self.shapes)
        return (*first, last.astype(self.dtype))


def reductions(a: Any) -> Any:
    """Row n: n times its largest number is added to all its numbers; from row 2 on, the sum of all."""
    rows = []
    for number, row in enumerate(a):
        for _ in range(number):
            row = row + row.max()
        rows.append(np.broadcast_to(row.sum(), row.shape) if number >= 2 else row)
    return np.stack(rows)


def shuffled(a: Any) -> Any:
    """Sums of subgroups, less the value of the lane before, 0 in the first of a subgroup."""
    before = np.roll(a, 1, 1)
    before[:, ::32] = 0
    return a.reshape(2, 2, 32).sum(-1).repeat(32, 1) - before


PROGRAMS = (
    SharedProgram(
        "matmul with two tiles",
        text_beside(__file__, "MATMUL"),
        ((32, 48), (48, 32), (32, 32)),
        lambda a, b, _: a @ b,
        (
            ("%t[%p, %tx] : memref", "%t[%tx, %p] : memref"),
            ("%s[%ty, %p]", "%s[%tx, %p]"),
            ("arith.mulf %v, %w", "arith.addf %v, %w"),
            ("%n step %c16", "%c32 step %c16"),
            ("%a[%row, %ka]", "%a[%row, %k]"),
            ("%c[%row, %col]", "%c[%col, %row]"),
        ),
    ),
    SharedProgram(
        "transpose with a padded tile",
        text_beside(__file__, "TRANSPOSE"),
        ((64, 32), (32, 64)),
        lambda a, _: a.T,
        (("%s[%tx, %i]", "%s[%i, %tx]"), ("%b[%row, %col]", "%b[%i, %col]")),
    ),
    SharedProgram(
        "sum of rows as a tree",
        text_beside(__file__, "TREE"),
        ((8, 64), (8,)),
        lambda a, _: a.sum(1),
        (
            ("arith.addf %y, %z", "arith.maximumf %y, %z"),
            ("(%half = %c32)", "(%half = %c16)"),
            ("%s[%c0] : memref", "%s[%c1] : memref"),
        ),
    ),
    SharedProgram(
        "reductions over blocks in a loop and a branch",
        text_beside(__file__, "REDUCTIONS"),
        ((4, 33), (4, 33)),
        lambda a, _: reductions(a),
        (("maximumf %acc", "minimumf %acc"), ("add %s", "mul %s"), ("uge, %bx, %c2", "ugt, %bx, %c2")),
    ),
    SharedProgram(
        "sums by shuffles",
        text_beside(__file__, "SHUFFLES"),
        ((2, 64), (2, 64)),
        lambda a, _: shuffled(a),
        (("xor %s2, %o2", "xor %s2, %o1"), ("up %x, %o1", "down %x, %o1"), ("%up, %zero", "%up, %x")),
    ),
    SharedProgram(
        "histogram by atomic updates of shared memory",
        text_beside(__file__, "HISTOGRAM"),
        ((4, 64), (4, 8)),
        lambda a, _: np.stack([np.bincount(row.astype(int), minlength=8) for row in a]),
        (("addi %one, %s[%i]", "addi %n, %s[%i]"), ("%y = memref.load %s[%tx]", "%y = memref.load %s[%c1]")),
        np.int32,
    ),
)
MUTATIONS = [(program, change) for program in PROGRAMS for change in program.mutations]


def interpreted(text: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns what a program leaves on the host."""
    from tuner.programs.run.host_function import HostFunction

    code = compiler_of(TargetName("cpu")).compile(text, None, None).code
    assert code.interpreted
    own = copies(arguments)
    return outputs(code, HostFunction(code)(*own), own)


@cache
def right(program: SharedProgram) -> tuple[Any, ...]:
    """Returns what a program leaves on the host as it is, interpreted once for all its changes."""
    return interpreted(program.text, program.arguments())


def simulated(text: str, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Returns a program's code and what it leaves on the simulator."""
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    code = compiler_of(SIMULATOR).compile(text, None, None).code
    own, device = copies(arguments), SimulatedDevice("sm_90")
    program = DeviceFunction(code, device)
    try:
        found = outputs(code, program(*own), own)
    finally:
        program.close()
    return code, found


@pytest.mark.drawn(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_interpretation_gives_what_numpy_gives_and_so_does_the_simulator(program: SharedProgram) -> None:
    arguments = program.arguments()
    (on_host,) = right(program)
    np.testing.assert_array_equal(on_host, program.expected(*arguments))
    code, found = simulated(program.text, arguments)
    assert [one.verdict for one in compare(code, found, (on_host,))] == ["equal"]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("program", "change"), MUTATIONS, ids=[f"{program.name}, {change[1]}" for program, change in MUTATIONS]
)
def test_a_wrong_index_or_operation_is_noticed_and_the_interpretation_follows_it(
    program: SharedProgram, change: tuple[str, str]
) -> None:
    """On the device a changed program gives other numbers than the right one, its interpretation too."""
    assert program.text.count(change[0]) == 1
    arguments, text = program.arguments(), program.text.replace(*change)
    code, found = simulated(text, arguments)
    assert [one.verdict for one in compare(code, found, right(program))] == ["WRONG"]
    assert [one.verdict for one in compare(code, found, interpreted(text, arguments))] == ["equal"]
