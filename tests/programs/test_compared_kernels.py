"""``--compare`` of programs whose threads work together: PTX on the simulator against interpreted IR."""

import re
from collections.abc import Callable
from contextlib import closing
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
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.host_function import HostFunction
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir


SIMULATOR = TargetName.parse("simulator:sm_90")


@dataclass(frozen=True)
class SharedProgram:
    """A program of arrays, the last of which is written; threads wait for one another, and share memory."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    expected: Callable[..., Any]  # of the arrays before: the last of them after
    dtype: Any = np.float32  # of the last array

    @property
    def text(self) -> str:
        return re.sub(r"^// change: .*\n", "", text_beside(__file__, self.name), flags=re.MULTILINE)

    @property
    def mutations(self) -> list[tuple[str, str]]:
        """Returns (text, what stands there instead) that change what the program computes."""
        return re.findall(r"^// change: (.*) => (.*)$", text_beside(__file__, self.name), re.MULTILINE)

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
    SharedProgram("MATMUL", ((32, 48), (48, 32), (32, 32)), lambda a, b, _: a @ b),  # with two tiles
    SharedProgram("TRANSPOSE", ((64, 32), (32, 64)), lambda a, _: a.T),  # with a padded tile
    SharedProgram("TREE", ((8, 64), (8,)), lambda a, _: a.sum(1)),  # sums of rows
    SharedProgram("REDUCTIONS", ((4, 33), (4, 33)), lambda a, _: reductions(a)),  # in a loop and a branch
    SharedProgram("SHUFFLES", ((2, 64), (2, 64)), lambda a, _: shuffled(a)),
    SharedProgram(  # by atomic updates of shared memory
        *("HISTOGRAM", ((4, 64), (4, 8))),
        lambda a, _: np.stack([np.bincount(row.astype(int), minlength=8) for row in a]),
        np.int32,
    ),
)
MUTATIONS = [(program, change) for program in PROGRAMS for change in program.mutations]


def interpreted(text: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    code = compiler_of(TargetName("cpu")).compile(text, None, None).code
    assert code.interpreted
    own = copies(arguments)
    return outputs(code, HostFunction(code)(*own), own)


@cache
def right(program: SharedProgram) -> tuple[Any, ...]:
    return interpreted(program.text, program.arguments())


def simulated(text: str, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    code, own = compiler_of(SIMULATOR).compile(text, None, None).code, copies(arguments)
    device = SimulatedDevice("sm_90")  # may report: a changed program has races
    with closing(DeviceFunction(code, device)) as program:
        return code, outputs(code, program(*own), own)


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
