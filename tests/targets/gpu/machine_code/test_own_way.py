from tests.targets.gpu.machine_code.listings import FFMA, Line, kernel_of, loop
from tuner.cost_model.gpu import LATENCY
from tuner.targets.gpu.machine_code.own_way import BARRIER_CYCLES, LATENCIES, own_way

LOAD = Line("LDG.E R4, [R8]", 1, sets=0)
USE = Line("FADD R5, R4, R5", 4, waits=(0,))


def test_stall_counts_add_up() -> None:
    assert own_way(kernel_of(FFMA, FFMA, Line("EXIT", 0)), (1, 3, 1)) == 2 + 6 + 1


def test_a_use_waits_for_its_load_and_what_is_done_meanwhile_is_saved() -> None:
    assert own_way(kernel_of(LOAD, USE), (1, 1)) == LATENCY + 4
    assert own_way(kernel_of(LOAD, *[FFMA] * 5, USE), (1,) * 7) == LATENCY + 4


def test_loads_that_are_under_way_together_are_waited_for_once() -> None:
    second = Line("LDG.E R6, [R8+0x10]", 1, sets=1)
    both = Line("FADD R5, R4, R6", 4, waits=(0, 1))
    assert own_way(kernel_of(LOAD, second, both), (1, 1, 1)) == 1 + LATENCY + 4


def test_what_a_turn_before_loaded_is_there() -> None:
    ahead = kernel_of(*loop(".L_x_0", USE, *[FFMA] * 150, LOAD))
    late = kernel_of(*loop(".L_x_0", LOAD, USE, *[FFMA] * 150))
    turns = 10.0
    counts = (turns,) * 153
    assert own_way(ahead, counts) == turns * (4 + 300 + 1 + 5 + LATENCY - 6)  # the load ends the turn
    assert own_way(late, counts) == turns * (LATENCY + 4 + 300 + 5)


def test_barriers_take_their_time() -> None:
    assert own_way(kernel_of(Line("BAR.SYNC 0x0", 6)), (2,)) == 2 * (6 + BARRIER_CYCLES)
    assert LATENCIES["LDS"] < LATENCIES["LDG"]
