"""What is counted of machine code, on listings written by hand; cycles that are predicted for real cubins."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.elsewhere.bundle.values import program
from tests.support.gpu_points import CUDA_CORES, HOPPER, TENSOR_CORES, Builder, Point, point
from tests.tuning.fakes import present
from tuner.core.compiled_code import BusyCycles
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.cost_model.gpu import LATENCY
from tuner.gpu.ptxsim.memory.access_log import Access
from tuner.gpu.ptxsim.target import cycle_model
from tuner.gpu.ptxsim.target.cycle_model import (
    BlockWork,
    KernelCounts,
    critical_path,
    executions,
    memory_cycles,
    register_reads,
)
from tuner.gpu.target import sass as module
from tuner.gpu.target.compiler import find_ptxas, locate
from tuner.gpu.target.sass import Kernel, MachineInstruction, read_kernels, sass
from tuner.runtime.wheel_tools import Tool

# What ``nvdisasm -c -hex`` prints of kernels that are written by hand.


@dataclass(frozen=True)
class Line:
    text: str
    stall_cycles: int = 1
    sets: int = module.NO_BARRIER
    waits: tuple[int, ...] = ()

    @property
    def word(self) -> str:
        mask = sum(1 << number for number in self.waits)
        return f"{self.stall_cycles << 41 | self.sets << 46 | mask << 52 | 0b111:016x}"


def listing(*lines: Line | str) -> str:
    text, address = [".section .text.k", ".text.k:"], 0
    for line in lines:
        if isinstance(line, str):
            text.append(f"{line}:")
        else:
            text.append(f"        /*{address:04x}*/          {line.text} ;   /* 0x0123456789abcdef */")
            text.append(f"                                   /* 0x{line.word} */")
            address += 16
    return "\n".join(text)


def kernel_of(*lines: Line | str) -> Kernel:
    (kernel,) = read_kernels(listing(*lines))
    return kernel


FFMA, LDS = Line("FFMA R0, R1, R2, R0", 2), Line("LDS.128 R4, [R8]", 1, sets=0)


def loop(label: str, *body: Line | str) -> tuple[Line | str, ...]:
    """Returns a loop around lines; the branch back is one more instruction."""
    return (label, *body, Line(f"@P0 BRA `({label})", 5))


OUTER = loop(".L_x_0", LDS, *loop(".L_x_1", FFMA, FFMA), FFMA)
NESTED = kernel_of(Line("MOV R1, c[0x0][0x28]"), *OUTER, FFMA, Line("EXIT", 5), *loop(".L_x_2"))


def test_an_instruction_has_its_name_its_words_and_its_control_code() -> None:
    wait = Line("@!P0 HMMA.16816.F32 R4, R8.reuse, R12, R4", 8, waits=(0, 5))
    copy, product = kernel_of(LDS, wait).code
    assert (copy.name, copy.mnemonic, copy.words, copy.sets, copy.waits) == ("LDS.128", "LDS", 4, 0, ())
    assert (product.text, product.stall_cycles) == ("HMMA.16816.F32 R4, R8.reuse, R12, R4", 8)
    assert (product.sets, product.waits) == (None, (0, 5))
    assert product.sources == ((8, True), (12, False), (4, False))
    names = ("LDG.E.128.CONSTANT R0", "LDS.64 R0", "STS R0", "LDS.U.8 R0")
    assert [MachineInstruction(0, name).words for name in names] == [4, 2, 1, 1]
    with pytest.raises(AssertionError, match="allowed the high word of an instruction"):
        read_kernels(listing(FFMA).rpartition("\n")[0])


def test_loops_are_what_branches_back_close_but_no_jump_from_after_the_end() -> None:
    assert NESTED.loops() == ((2, 5), (1, 7))  # the endless branch to itself at the end is none
    again = Line("BRA `(.L_x_0)", 5)  # a wait outside of the loop has succeeded at last
    assert kernel_of(".L_x_0", FFMA, *loop(".L_x_1", FFMA), Line("EXIT"), again).loops() == ((1, 3),)


def test_kernels_are_reported_instruction_by_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "nvdisasm", lambda: Tool(Path("nvdisasm"), "PATH"))
    monkeypatch.setattr(module, "listing_of", lambda _cubin, _tool: listing(LDS, FFMA))
    assert sass(program(binary=b"code")) == "<k>:\n  LDS.128 R4, [R8]\n  FFMA R0, R1, R2, R0\n"
    assert sass(None) == sass(program(binary=b"")) == ""
    monkeypatch.setattr(module, "nvdisasm", lambda: None)
    assert sass(program(binary=b"code")) == ""


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
    assert cycle_model.multiply_adds(MachineInstruction(0, f"{name} R0, R4, R8, R0")) == expected


def test_the_main_loop_is_the_innermost_with_most_products() -> None:
    few, many = loop(".L_x_0", FFMA), loop(".L_x_1", FFMA, FFMA, LDS)
    assert cycle_model.main_loop(kernel_of(*few, *many)) == (2, 6)
    assert cycle_model.main_loop(NESTED) == (2, 5)
    assert cycle_model.main_loop(kernel_of(*loop(".L_x_0", LDS))) is None


def test_a_loop_turns_as_often_as_the_products_want_and_what_is_around_it_as_given() -> None:
    assert executions(kernel_of(FFMA, Line("EXIT")), owed=100) == (1, 1)  # without a loop of products
    one_loop = kernel_of(FFMA, *loop(".L_x_0", LDS, FFMA, FFMA), Line("EXIT"))
    assert executions(one_loop, owed=101) == (1, 50, 50, 50, 50, 1)
    counts = executions(NESTED, owed=1 + 8 * (1 + 2 * 5), outer_iterations=8)
    assert counts[:9] == (1, 8, 40, 40, 40, 8, 8, 1, 1)


LOADS = kernel_of(Line("LDS R0, [R1]"), Line("FFMA R0, R1, R2, R3"), Line("LDS.128 R4, [R1]"))
ROW = tuple(range(32))
CONFLICT, BROADCAST = tuple(32 * lane for lane in range(32)), (0,) * 32


def access(words: tuple[int, ...], width: int = 1, opcode: str = "ld.shared.b32") -> Access:
    return Access(opcode, 1, words, width)


VECTOR, BULK = "ld.shared.v4.b32", "cp.async.bulk.tensor.2d.shared::cluster.global"
SPILL = pytest.approx(128 * 2 / 24)


@pytest.mark.parametrize(
    ("kernel", "seen", "capability", "expected"),
    [
        (LOADS, (), 80, {0: 1.0, 2: 4.0}),  # without accesses lanes ask for words in a row
        (LOADS, (), 75, {0: 2.0, 2: 8.0}),
        # an access costs what those of its width cost, else what the others cost
        (LOADS, (access(ROW), access(CONFLICT), access(BROADCAST, 4, VECTOR)), 80, {0: (1 + 32) / 2, 2: 2.0}),
        (LOADS, (access(tuple(2 * lane for lane in range(32))),), 80, {0: 2.0, 2: 2.0}),
        # a bulk copy is not an access of lanes
        (kernel_of(Line("LDGSTS.E.BYPASS.128 [R0], [R2]")), (access(BROADCAST, 4, BULK),), 80, {0: 4.0}),
        # spills go to the second level
        (kernel_of(Line("LDL.64 R0, [R1]"), Line("STG.E.128 [R2], R4")), (), 80, {0: SPILL, 1: 4.0}),
    ],
)
def test_memory_costs_what_its_accesses_cost(
    kernel: Kernel, seen: tuple[Access, ...], capability: int, expected: dict[int, float]
) -> None:
    assert memory_cycles(kernel, seen, capability) == expected


@pytest.mark.parametrize(
    ("line", "opcode"),
    [
        ("LDSM.16.M88.4 R0, [R1]", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
        ("LDGSTS.E.BYPASS.128 [R0], [R2]", "cp.async.cg.shared.global"),
        ("STS.128 [R0], R4", "st.shared.v4.b32"),
    ],
)
def test_rows_of_one_bank_are_served_one_by_one(line: str, opcode: str) -> None:
    kernel = kernel_of(Line(line))
    in_a_row = tuple(4 * lane for lane in range(32))
    for words, cycles in ((in_a_row, 4.0), (CONFLICT, 32.0)):
        assert memory_cycles(kernel, (access(words, 4, opcode),), 80) == {0: cycles}


LOAD = Line("LDG.E R4, [R8]", 1, sets=0)
USE = Line("FADD R5, R4, R5", 4, waits=(0,))


def test_stall_counts_add_up_and_a_use_waits_for_its_load() -> None:
    assert critical_path(kernel_of(FFMA, FFMA, Line("EXIT", 0)), (1, 3, 1)) == 2 + 6 + 1
    assert critical_path(kernel_of(LOAD, USE), (1, 1)) == LATENCY + 4
    assert critical_path(kernel_of(LOAD, *[FFMA] * 5, USE), (1,) * 7) == LATENCY + 4  # done meanwhile
    second = Line("LDG.E R6, [R8+0x10]", 1, sets=1)
    both = Line("FADD R5, R4, R6", 4, waits=(0, 1))  # waits once for loads that are under way together
    assert critical_path(kernel_of(LOAD, second, both), (1, 1, 1)) == 1 + LATENCY + 4
    assert critical_path(kernel_of(Line("BAR.SYNC 0x0", 6)), (2,)) == 2 * (6 + cycle_model.BARRIER_CYCLES)
    assert cycle_model.LATENCIES["LDS"] < cycle_model.LATENCIES["LDG"]


def test_what_a_turn_before_loaded_is_there() -> None:
    ahead = kernel_of(*loop(".L_x_0", USE, *[FFMA] * 150, LOAD))
    late = kernel_of(*loop(".L_x_0", LOAD, USE, *[FFMA] * 150))
    turns = 10.0
    counts = (turns,) * 153
    assert critical_path(ahead, counts) == turns * (4 + 300 + 1 + 5 + LATENCY - 6)  # the load ends the turn
    assert critical_path(late, counts) == turns * (LATENCY + 4 + 300 + 5)


BLOCKS = BlockWork(blocks=200, warps=8, resident=2, fetched_bytes=2400.0, stored_bytes=0.0)


def counts(
    kernel: Kernel, executed: float = 10.0, capability: int = 80, path: float = 0.0, sums: float = 32.0
) -> KernelCounts:
    memory = {0: path} if path else {}
    return KernelCounts(kernel, (executed,) * len(kernel.code), memory, 1024.0, capability, sums)


def test_each_part_is_counted_for_the_warps_that_share_it() -> None:
    kernel = kernel_of(LDS, FFMA, Line("IADD3 R0, R1, R2, R3"), Line("HMMA.16816.F32 R4, R8, R12, R4", 8))
    parts = counts(kernel, path=3.0).parts(BLOCKS, 2)
    assert parts.issue == 4 * 40  # 16 warps on 4 partitions
    assert parts.products == 4 * 10 * (2 + 64 * 32 * 4 / 1024)
    assert parts.integers == 4 * 10 * 2
    assert parts.memory == 16 * 10 * 3
    assert parts.second_level == pytest.approx(2 * 2400 / 24)
    assert parts.critical_path == 10 * (1 + 2 + 1 + 8)
    assert parts.bottleneck == parts.memory


@pytest.mark.parametrize(
    ("line", "capability", "cycles"),
    [
        (FFMA, 80, 2),
        (FFMA, 86, 1),
        (Line("FFMA R0, R2, R4, R6"), 86, 2),  # one bank
        (Line("FFMA R0, R2.reuse, R4, R6"), 86, 1),
    ],
)
def test_two_pipes_are_twice_as_fast_but_for_one_bank(line: Line, capability: int, cycles: int) -> None:
    assert counts(kernel_of(line), 1, capability).parts(BLOCKS, 2).products == 4 * cycles


KEPT = Line("FFMA R0, R2.reuse, R5, R0")


@pytest.mark.parametrize(
    ("lines", "alone", "cycles"),
    [
        ((Line("FFMA R0, R2, R4, R6"),) * 2, 3, 3),
        ((Line("FFMA R0, R2, R5, R7"), Line("FFMA R1, R2, R4, R7")), 2, 1.5),  # the banks even out
        ((KEPT, Line("FFMA R1, R2, R7, R1")), 2, 1.5),  # R2 is in the operand cache
        ((KEPT, Line("FFMA R1, R6, R2, R1")), 2, 2),  # of another operand
        ((KEPT, LDS, Line("FFMA R1, R2, R7, R1")), 2, 1.5),
        ((Line("FFMA R0, R2, c[0x0][0x10], R5"),), 1, 1),
    ],
)
def test_reads_of_registers_are_counted_by_bank(lines: tuple[Line, ...], alone: float, cycles: float) -> None:
    reads = present(register_reads(kernel_of(*loop(".L_x_0", *lines))))
    assert (reads.alone, reads.cycles) == (alone, cycles)
    assert reads.in_one_bank == float(alone == 3)


def test_reads_even_out_over_two_products_in_turn_and_not_over_four() -> None:
    even, odd = Line("FFMA R0, R2, R4, R6"), Line("FFMA R1, R3, R5, R7")
    neighbours = present(register_reads(kernel_of(*loop(".L_x_0", even, odd, even, odd))))
    runs = present(register_reads(kernel_of(*loop(".L_x_0", even, even, odd, odd))))
    assert (neighbours.cycles, runs.cycles) == (1.5, 3.0)


def test_ports_count_where_threads_hold_many_sums() -> None:
    kernel = kernel_of(*loop(".L_x_0", Line("FFMA R0, R2, R4, R6"), LDS))
    assert counts(kernel, sums=63.0).parts(BLOCKS, 2).ports == 0
    assert counts(kernel, sums=64.0).parts(BLOCKS, 2).ports == 4 * 10 * (2 + 3) / cycle_model.PORT_SLACK
    assert counts(kernel_of(LDS), sums=64.0).parts(BLOCKS, 2).ports == 0


def test_waves_follow_one_another_the_last_takes_its_share_and_few_blocks_do_not_share() -> None:
    one = counts(kernel_of(FFMA), 1000.0)
    wave = one.parts(BLOCKS, 2).bottleneck
    assert one.cycles(BLOCKS, 100) == wave + cycle_model.WAVE_CYCLES
    assert one.cycles(BLOCKS, 50) == 2 * (wave + cycle_model.WAVE_CYCLES)
    assert one.cycles(BLOCKS, 80) == wave + cycle_model.WAVE_CYCLES + wave / 2 + cycle_model.WAVE_CYCLES
    assert BLOCKS.together(200) == BLOCKS.together(10_000) == 1
    assert one.cycles(BLOCKS, 200) == one.parts(BLOCKS, 1).bottleneck + cycle_model.WAVE_CYCLES


# Real cubins of our strategies.
HALF, TRANSPOSED = Matmul(1024, 1024, 1024, "f16"), Matmul(1024, 1024, 1024, "f32", "nt")


@pytest.fixture(scope="module")
def builder() -> Builder:
    if locate("nvdisasm") is None or find_ptxas() is None:
        pytest.skip("needs nvdisasm and ptxas (pip install -e '.[bench,cuda]')")
    return Builder("sm_80")


def parts(builder: Builder, wanted: Point) -> tuple[float, BusyCycles]:
    found = present(cycle_model.predicted(wanted.problem, builder.build(wanted).program))
    return found.cycles, present(found.parts)


@pytest.mark.mlir
def test_tensor_cores_are_predicted_between_their_peak_and_an_eighth_of_it(builder: Builder) -> None:
    cycles, _ = parts(builder, point(TENSOR_CORES, HALF))
    peak = 1024**3 / 1024 / 108  # multiply-adds per cycle and multiprocessor, multiprocessors of an A100
    assert peak < cycles < 8 * peak


@pytest.mark.mlir
def test_blocks_of_one_multiprocessor_have_the_tiles_of_their_stages_in_flight(builder: Builder) -> None:
    problem = Matmul(1024, 1024, 256, "f16", "nt")
    wanted = point(HOPPER, problem, block_m=64, block_n=64, consumers=1)  # 256 blocks, two at once
    program = Builder("sm_90a").build(wanted).program
    predicted = present(cycle_model.predicted(wanted.problem, program))
    assert predicted.in_flight_bytes == 2 * 4 * (64 + 64) * 128
    copied = builder.build(point(TENSOR_CORES, HALF)).program
    assert present(cycle_model.predicted(HALF, copied)).in_flight_bytes == 0


@pytest.mark.mlir
def test_rows_of_a_block_that_the_problem_does_not_have_are_multiplied_as_well(builder: Builder) -> None:
    knobs: dict[str, Any] = {"block_m": 8, "block_n": 64, "consumers": 1, "group": 1}
    busy = []
    for rows in (1, 8):
        wanted = point(HOPPER, Matmul(rows, 4096, 4096, "bf16", "nt"), **knobs)
        program = Builder("sm_90a").build(wanted).program
        busy.append(present(present(cycle_model.predicted(wanted.problem, program)).parts))
    assert busy[0].products == pytest.approx(busy[1].products, rel=0.05)
    assert busy[0].issue == pytest.approx(busy[1].issue, rel=0.05)
    assert busy[0].products >= 64 * 8 * 4096 / 2048  # multiply-adds of a block, of a multiprocessor per cycle


@pytest.mark.mlir
def test_bank_conflicts_are_seen_in_the_lanes_addresses(builder: Builder) -> None:
    padded, dense = (parts(builder, point(CUDA_CORES, TRANSPOSED, pad_bytes=each))[1] for each in (16, 0))
    assert 2 * padded.memory < dense.memory


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("strategy", "problem", "knobs"),
    [(TENSOR_CORES, HALF, {}), (CUDA_CORES, Matmul(1024, 1024, 1024), {"unroll_k": 2})],
    ids=str,
)
def test_a_warp_that_reads_ahead_waits_less(
    builder: Builder, strategy: str, problem: Problem, knobs: dict[str, Any]
) -> None:
    points = (point(strategy, problem, **knobs, prefetch=each) for each in (1, 0))
    ahead, behind = (parts(builder, each)[1] for each in points)
    assert ahead.critical_path < behind.critical_path
