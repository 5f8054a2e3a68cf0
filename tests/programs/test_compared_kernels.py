"""``--compare`` of programs whose threads work together: PTX on the simulator against interpreted IR."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.shared_memory_programs import PROGRAMS, SharedProgram
from tuner.core.candidate import TargetName
from tuner.programs.comparison import compare, outputs
from tuner.programs.execution import copies

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.interpreter.kernels")

SIMULATOR = TargetName.parse("simulator:sm_90")
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
    return interpreted(program.text, arguments_of(program))


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


def arguments_of(program: SharedProgram) -> tuple[Any, ...]:
    arrays = program.arrays()
    if "xi32>) {" in program.text:  # of the last argument
        return (*arrays[:-1], arrays[-1].astype(np.int32))
    return arrays


@pytest.mark.drawn(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_interpretation_gives_what_numpy_gives_and_so_does_the_simulator(program: SharedProgram) -> None:
    arguments = arguments_of(program)
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
    arguments, text = arguments_of(program), program.text.replace(*change)
    code, found = simulated(text, arguments)
    assert [one.verdict for one in compare(code, found, right(program))] == ["WRONG"]
    assert [one.verdict for one in compare(code, found, interpreted(text, arguments))] == ["equal"]
