"""The rotated loops of CUDA cores and of mma.sync, right in any order; broken loops and scripts, noticed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.gpu.ptxsim.ptx.matmuls import Edit
from tests.gpu.target.strategies.points import SIMT, Seed, compiled, mma_sync, outcome, require_right, simt
from tests.gpu.target.strategies.test_points import OF_F64, Build, Knobs, case
from tests.support.gpu_point import GpuPoint
from tests.targets.evaluation import fails
from tuner.core.compiled_code import KernelCode, buffers_of
from tuner.core.errors import Stage
from tuner.core.gpu import chip_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.mlir.lowering import lower_to_program
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import scratch_in
from tuner.mlir import transform
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.building import value
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir
TINY_SIMT: Knobs = {"block_m": 32, "block_n": 32, "split_n": 1, "prefetch": 1}
OF_NT: Knobs = {"split_n": 4, "thread_n": 1, "pad_bytes": 16, "depth": 3}
TINY: Knobs = {"block_m": 32, "block_n": 32, "warps_m": 2, "warps_n": 1}
BLOCK_OF_96: Knobs = {"block_m": 96, "block_n": 96, "warps_m": 3}
POINTS = (  # the first of each strategy in all orders, others in two
    *(case(simt, Matmul(32, 31, 40), seed, **TINY_SIMT, unroll_k=1) for seed in (None, 1, 2)),
    *(case(simt, Matmul(31, 32, 36, layout="nt"), seed, chip="sm_80", **(TINY_SIMT | OF_NT))
      for seed in (None, 1)),
    *(case(simt, Matmul(32, 18, 24, "f64", "tn"), seed, **TINY_SIMT, **OF_F64, split_m=2, depth=1)
      for seed in (None, 2)),
    *(case(mma_sync, Matmul(32, 32, 160, "f16"), seed, **TINY, prefetch=1, depth=1) for seed in (None, 1, 2)),
    *(case(mma_sync, Matmul(33, 30, 100, "f16", "nn", "bias_relu", "f16"), seed,
           chip="sm_80", **TINY, prefetch=2, depth=4) for seed in (None, 2)),
    *(case(mma_sync, Matmul(32, 40, 91, "f16", "tn"), seed, **TINY, prefetch=1, pack=1, shared="pad")
      for seed in (None, 1)),
    # one step of K per tile
    *(case(mma_sync, Matmul(32, 32, 64, "bf16", "nt"), seed, **TINY, prefetch=2, block_k=16)
      for seed in (None, 2)),
    *(case(mma_sync, Matmul(32, 32, 160, "bf16"), seed, **TINY, prefetch=1, splits=2) for seed in (None, 1)),
    # copies in the second step
    *(case(mma_sync, Matmul(32, 32, 136, "f16"), seed, **TINY, prefetch=1, block_k=64, depth=2)
      for seed in (None, 2)),
    # B by scalar loads
    *(case(mma_sync, Matmul(32, 34, 40, "tf32"), seed, **TINY, prefetch=1, block_k=16, depth=3)
      for seed in (None, 1)),
    *(case(mma_sync, Matmul(32, 32, 80, "tf32", "nt"), seed,
           **TINY, prefetch=2, splits=2, split_by="workspace") for seed in (None, 2)),
)  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("build", "seed"), POINTS)
def test_a_rotated_loop_is_right_under_all_schedules(build: Build, seed: Seed) -> None:
    one = build()
    if one.candidate.strategy == SIMT:
        *others, behind = (part.count("ld.shared") for part in compiled(one).text.split("bar.sync"))
        assert 0 < behind < sum(others) / 2  # LLVM would move all of them to where the loop begins
    require_right(one, seed=seed)


# Changes that break a rotated loop of a script's payload, after its barrier or around it.
READS = ("nvgpu.ldmatrix", "vector.load")
HALF = Matmul(32, 32, 192, "f16")


@dataclass(frozen=True)
class Rotated:
    loop: Op

    @property
    def body(self) -> list[Op]:
        return [op.operation for op in self.loop.regions[0].blocks[0].operations]

    def one(self, name: str) -> Op:
        (found,) = (op for op in self.body if op.name == name)
        return found

    @property
    def after_the_barrier(self) -> list[Op]:
        body = self.body
        return body[body.index(self.one(BARRIER)) + 1 :]

    @property
    def read(self) -> list[Any]:
        return [op.results[0] for op in self.after_the_barrier if op.name in READS]


WAIT, BARRIER, COMMIT = "nvgpu.device_async_wait", "gpu.barrier", "nvgpu.device_async_create_group"
Change = Callable[[Rotated], None]


def wait_one_step_late(rotated: Rotated) -> None:
    wait = rotated.one(WAIT)
    groups = int(ir.IntegerAttr(wait.attributes["numGroups"]).value)
    wait.attributes["numGroups"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), groups + 1)


def read_the_stage_of_this_tile(rotated: Rotated) -> None:
    """The reads after the barrier take the tile that was multiplied, not the next."""
    counter, *arguments = rotated.loop.regions[0].blocks[0].arguments
    *reads, end = rotated.after_the_barrier
    renamed = {old: new for old, new in zip(end.operands, arguments, strict=True) if old.type == counter.type}
    for op in reads:
        for number, operand in enumerate(op.operands):
            op.operands[number] = renamed.get(operand, operand)


def use_fragments_one_step_late(rotated: Rotated) -> None:
    arguments = list(rotated.loop.regions[0].blocks[0].arguments)[1:]
    end = rotated.body[-1]
    for number, argument in enumerate(arguments):
        if isinstance(argument.type, ir.VectorType) and end.operands[number] in rotated.read:
            end.operands[number] = argument


def read_before_the_wait(rotated: Rotated) -> None:
    last = rotated.read[-1].owner
    for name in (BARRIER, WAIT):
        rotated.one(name).move_after(last)


def count_a_stage_too_few(rotated: Rotated) -> None:
    compared = [op for op in rotated.body if op.name == "arith.cmpi"]
    (at_end,) = (op for op in compared if isinstance(op.operands[1].type, ir.IntegerType))
    stages = at_end.operands[1]
    fewer = ir.IntegerAttr(stages.owner.attributes["value"]).value - 1
    with ir.InsertionPoint(at_end), at_end.location:
        attribute = ir.IntegerAttr.get(stages.type, fewer)
        at_end.operands[1] = value("arith.constant", stages.type, value=attribute)


def broken(one: GpuPoint, change: Change) -> KernelCode:
    text = one.script()
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(gpu_payload_mlir(one.problem, scratch_in(text, one.problem)), "payload")
        transform.apply_script(module, transform.parse(text, "script"))
        (loop,) = walk(module, "scf.for")
        change(Rotated(loop))
        assert module.operation.verify()
        return lower_to_program(module, chip_of(one.chip), buffers_of(one.problem))


CHANGES: dict[str, Change] = {
    "no wait": lambda rotated: rotated.one(WAIT).erase(),
    "wait one step late": wait_one_step_late,
    "barrier before wait": lambda rotated: rotated.one(BARRIER).move_before(rotated.one(WAIT)),
    "commit after the wait": lambda rotated: rotated.one(COMMIT).move_before(rotated.body[-1]),
    "a stage too few": count_a_stage_too_few,
}
OF_READS: dict[str, Change] = {
    "no barrier": lambda rotated: rotated.one(BARRIER).erase(),
    "read the stage of this tile": read_the_stage_of_this_tile,
    "use fragments one step late": use_fragments_one_step_late,
    "read before the wait": read_before_the_wait,
}
CHANGES |= OF_READS


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("strategy", "name"), [*(("simt", name) for name in OF_READS), *(("mma_sync", name) for name in CHANGES)]
)
def test_a_broken_loop_is_caught(strategy: str, name: str) -> None:
    of_half = TINY | {"prefetch": 1 + list(CHANGES).index(name) % 2}
    one = simt(Matmul(32, 32, 40), **TINY_SIMT) if strategy == "simt" else mma_sync(HALF, **of_half)
    is_right, _ = outcome(one, broken(one, CHANGES[name]))
    assert not is_right


@pytest.mark.slow
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
def test_rows_of_any_length_have_no_conflicts(problem: Problem, knobs: Knobs, shared: str) -> None:
    simulations = require_right(mma_sync(problem, **(TINY | {"prefetch": 1} | knobs | {"shared": shared})))
    assert [simulation.conflict_ratio for simulation in simulations] == [1.0]
    assert simulations[0].conflicts


# Why scripts have what they have: without it a kernel races, is wrong, or is not made.
PLAIN = partial(simt, Matmul(64, 64, 64), depth=0)
PIPELINED = partial(simt, Matmul(64, 64, 64), depth=2)
TENSOR_CORES = partial(mma_sync, Matmul(64, 64, 256, "f16"))


def without(op: str) -> Edit:
    return lambda script: "\n".join(line for line in script.splitlines() if op not in line)


def instead(old: str, new: str) -> Edit:
    return lambda script: script.replace(old, new)


def changed(one: GpuPoint, edit: Edit) -> str:
    """Returns the script of a point, which the edit must change."""
    script = one.script()
    assert edit(script) != script
    return edit(script)


FEWER_BUFFERS = instead("factor = 3 : i64", "factor = 2 : i64")  # a tile is overwritten while it is read


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("build", "edit"),
    [
        pytest.param(PLAIN, without("tuner.insert_barriers"), id="no barriers, plain copies"),
        pytest.param(PIPELINED, without("tuner.insert_barriers"), id="no barriers, pipelined"),
        pytest.param(TENSOR_CORES, without("tuner.insert_barriers"), id="no barriers, tensor cores"),
        pytest.param(PLAIN, instead("loop_top = 1", "loop_top = 0"), id="plain copies, none at the top"),
        pytest.param(PIPELINED, FEWER_BUFFERS, id="fewer buffers than depth + 1"),
        pytest.param(TENSOR_CORES, FEWER_BUFFERS, id="fewer buffers, tensor cores"),
    ],
)
def test_a_kernel_without_what_orders_it_races(build: Build, edit: Edit) -> None:
    one = build()
    _, _, simulations = one.run(one.program(changed(one, edit)))
    assert any(simulation.races for simulation in simulations)


def test_loops_that_are_left_cannot_be_pipelined() -> None:
    one = PIPELINED()
    with fails(Stage.COMPILE, match="."):
        one.program(changed(one, without("tuner.unroll_inner_loops")))


def test_upstream_addresses_of_a_transposed_a_are_wrong() -> None:
    """Why the script has tuner.fix_transposed_a; once this fails, upstream is right and the op can go."""
    one = mma_sync(Matmul(64, 64, 64, "f16", "tn"))
    verdict, _, _ = one.run(one.program(changed(one, without("tuner.fix_transposed_a"))))
    assert not verdict.max_error <= 1.0
