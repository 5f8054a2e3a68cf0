import pytest

from tests.targets.gpu.machine_code.listings import FFMA, LDS, NESTED, Line, kernel_of, loop
from tuner.targets.gpu.machine_code.executions import executions, main_loop, multiply_adds
from tuner.targets.gpu.machine_code.listing import MachineInstruction


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FFMA.FTZ", 1),
        ("HFMA2.MMA", 2),
        ("HMMA.16816.F32.BF16", 64),
        ("HMMA.1688.F32.TF32", 32),
        ("IMMA.16832.S8.S8", 128),
        ("DMMA.884", 8),
        ("HGMMA.64x256x16.F32", 2048),
        ("IMAD.WIDE", 0),
        ("LDSM.16.MT88.4", 0),
    ],
)
def test_products_of_a_lane_by_shape(name: str, expected: int) -> None:
    assert multiply_adds(MachineInstruction(0, f"{name} R0, R4, R8, R0")) == expected


def test_the_main_loop_is_the_innermost_with_most_products() -> None:
    few, many = loop(".L_x_0", FFMA), loop(".L_x_1", FFMA, FFMA, LDS)
    assert main_loop(kernel_of(*few, *many)) == (2, 6)
    assert main_loop(NESTED) == (2, 5)
    assert main_loop(kernel_of(*loop(".L_x_0", LDS))) is None


def test_a_loop_turns_as_often_as_the_products_want() -> None:
    counts = executions(kernel_of(FFMA, *loop(".L_x_0", LDS, FFMA, FFMA), Line("EXIT")), owed=101)
    assert counts == (1, 50, 50, 50, 50, 1)


def test_a_loop_around_it_turns_as_told() -> None:
    counts = executions(NESTED, owed=1 + 8 * (1 + 2 * 5), outer_turns=8)
    assert counts[:9] == (1, 8, 40, 40, 40, 8, 8, 1, 1)


def test_code_without_a_loop_of_products_is_executed_once() -> None:
    assert executions(kernel_of(FFMA, Line("EXIT")), owed=100) == (1, 1)
