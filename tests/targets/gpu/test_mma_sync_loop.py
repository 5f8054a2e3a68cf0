"""The loop of the tensor-core strategy: right under all schedules, and found out where it is broken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.targets.gpu.test_mma_sync import point
from tuner.core.chips import chip_of
from tuner.core.kernel_program import KernelProgram, buffers_of
from tuner.core.problem import Matmul, Problem
from tuner.mlir import interpreter
from tuner.mlir.bindings import Op, ir
from tuner.mlir.gpu.lowering import lower_to_program
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.walking import walk
from tuner.payload.gpu import gpu_payload_mlir, views_in

pytestmark = pytest.mark.mlir

SCHEDULES = (None, 1, 2)  # of the first point; of each other, one at random and the usual one
READS = ("nvgpu.ldmatrix", "vector.load")
BLOCK_OF_96: dict[str, Any] = {"block_m": 96, "block_n": 96, "warps_m": 3}
TINY: dict[str, Any] = {"block_m": 32, "block_n": 32, "warps_m": 2, "warps_n": 1}
POINTS = (
    point(Matmul(32, 32, 160, "f16"), prefetch=1, **TINY, depth=1),
    point(Matmul(33, 30, 100, "f16", "nn", "bias_relu", "f16"), "sm_80", prefetch=2, **TINY, depth=4),
    point(Matmul(32, 40, 91, "f16", "tn"), prefetch=1, **TINY, pack=1, shared="pad"),
    point(Matmul(32, 32, 64, "bf16", "nt"), prefetch=2, **TINY, block_k=16),  # one step of K per tile
    point(Matmul(32, 32, 160, "bf16"), prefetch=1, **TINY, splits=2),
    point(Matmul(32, 32, 136, "f16"), prefetch=1, **TINY, block_k=64, depth=2),  # copies in the second step
    point(Matmul(32, 34, 40, "tf32"), prefetch=1, **TINY, block_k=16, depth=3),  # B by scalar loads
    point(Matmul(32, 32, 80, "tf32", "nt"), prefetch=2, **TINY, splits=2, split_by="workspace"),
)


@pytest.mark.parametrize("number", range(len(POINTS)), ids=lambda number: POINTS[number].candidate.text)
def test_a_rotated_loop_is_right_under_all_schedules(number: int) -> None:
    one = POINTS[number]
    program = one.program()
    for schedule in SCHEDULES if number == 0 else (None, 1 + number % 2):
        verdict, worst, simulations = one.run(program, schedule_seed=schedule)
        assert verdict.max_error <= 1.0, worst
        assert not any(simulation.hazards for simulation in simulations)


@dataclass(frozen=True)
class Rotated:
    """The loop of a script's payload, and what stands behind its barrier."""

    loop: Op

    @property
    def body(self) -> list[Op]:
        return [op.operation for op in self.loop.regions[0].blocks[0].operations]

    def one(self, name: str) -> Op:
        (found,) = (op for op in self.body if op.name == name)
        return found

    @property
    def behind_the_barrier(self) -> list[Op]:
        body = self.body
        return body[body.index(self.one("gpu.barrier")) + 1 :]


def drop_wait(rotated: Rotated) -> None:
    rotated.one("nvgpu.device_async_wait").erase()


def wait_one_step_late(rotated: Rotated) -> None:
    wait = rotated.one("nvgpu.device_async_wait")
    groups = int(ir.IntegerAttr(wait.attributes["numGroups"]).value)
    wait.attributes["numGroups"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), groups + 1)


def drop_barrier(rotated: Rotated) -> None:
    rotated.one("gpu.barrier").erase()


def barrier_before_wait(rotated: Rotated) -> None:
    rotated.one("gpu.barrier").move_before(rotated.one("nvgpu.device_async_wait"))


def read_the_stage_of_this_tile(rotated: Rotated) -> None:
    """The reads behind the barrier take the tile that was multiplied, not the next."""
    counter, *arguments = rotated.loop.regions[0].blocks[0].arguments
    *reads, end = rotated.behind_the_barrier
    renamed = {old: new for old, new in zip(end.operands, arguments, strict=True) if old.type == counter.type}
    for op in reads:
        for number, operand in enumerate(op.operands):
            op.operands[number] = renamed.get(operand, operand)


def use_fragments_one_step_late(rotated: Rotated) -> None:
    """An iteration passes on what it was given instead of what it has read."""
    arguments = list(rotated.loop.regions[0].blocks[0].arguments)[1:]
    end = rotated.body[-1]
    for number, argument in enumerate(arguments):
        if isinstance(argument.type, ir.VectorType) and end.operands[number] in _reads(rotated):
            end.operands[number] = argument


def _reads(rotated: Rotated) -> list[Any]:
    return [op.results[0] for op in rotated.behind_the_barrier if op.name in READS]


def read_before_the_wait(rotated: Rotated) -> None:
    """The wait and the barrier come behind the reads of the next tile."""
    reads = [op for op in rotated.behind_the_barrier if op.name in READS]
    rotated.one("gpu.barrier").move_after(reads[-1])
    rotated.one("nvgpu.device_async_wait").move_after(reads[-1])


def commit_behind_the_wait(rotated: Rotated) -> None:
    """The group of copies is committed when the groups in flight have been counted."""
    rotated.one("nvgpu.device_async_create_group").move_before(rotated.body[-1])


def count_a_stage_too_few(rotated: Rotated) -> None:
    """Copies go back to the first stage before the last one was filled."""
    compared = [op for op in rotated.body if op.name == "arith.cmpi"]
    (at_end,) = (op for op in compared if isinstance(op.operands[1].type, ir.IntegerType))
    stages = at_end.operands[1]
    fewer = ir.IntegerAttr(stages.owner.attributes["value"]).value - 1
    with ir.InsertionPoint(at_end), at_end.location:
        at_end.operands[1] = value(
            "arith.constant", stages.type, value=ir.IntegerAttr.get(stages.type, fewer)
        )


def broken(one: GpuPoint, change: Callable[[Rotated], None]) -> KernelProgram:
    """Compiles a point whose loop is changed behind the script."""
    text = one.script()
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(gpu_payload_mlir(one.problem, views_in(text, one.problem)), "payload")
        interpreter.apply_script(module, interpreter.parse(text, "script"))
        (loop,) = walk(module, "scf.for")
        change(Rotated(loop))
        assert module.operation.verify()
        return lower_to_program(module, chip_of(one.chip), buffers_of(one.problem))


MUTATIONS = (
    drop_wait,
    wait_one_step_late,
    drop_barrier,
    barrier_before_wait,
    read_the_stage_of_this_tile,
    use_fragments_one_step_late,
    read_before_the_wait,
    commit_behind_the_wait,
    count_a_stage_too_few,
)


@pytest.mark.parametrize(
    ("change", "prefetch"), [(change, 1 + number % 2) for number, change in enumerate(MUTATIONS)]
)
def test_a_broken_loop_is_caught(change: Callable[[Rotated], None], prefetch: int) -> None:
    one = point(Matmul(32, 32, 192, "f16"), prefetch=prefetch, **TINY)
    verdict, _, simulations = one.run(broken(one, change))
    assert not verdict.max_error <= 1.0 or any(simulation.races for simulation in simulations)


@pytest.mark.parametrize("shared", ["swizzle", "pad"])
@pytest.mark.parametrize(
    ("problem", "knobs"),
    [
        (Matmul(96, 96, 64, "f16"), BLOCK_OF_96),  # rows of 192 bytes
        (Matmul(32, 32, 48, "bf16", "nt"), {"block_k": 16}),  # of 32
        (Matmul(96, 96, 64, "tf32", "tn"), BLOCK_OF_96),
    ],
    ids=str,
)
def test_rows_of_any_length_are_free_of_bank_conflicts(
    problem: Problem, knobs: dict[str, Any], shared: str
) -> None:
    one = point(problem, prefetch=1, **(TINY | knobs | {"shared": shared}))
    verdict, worst, simulations = one.run(one.program())
    assert verdict.max_error <= 1.0, worst
    assert [simulation.conflict_ratio for simulation in simulations] == [1.0]
    assert simulations[0].conflicts
