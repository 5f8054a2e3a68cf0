"""Changes that break a rotated loop of a script's payload, behind its barrier or around it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu_check.gpu_point import GpuPoint
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import KernelProgram, buffers_of
from tuner.mlir import transform
from tuner.mlir.bindings import Op, ir
from tuner.mlir.gpu.lowering import lower_to_program
from tuner.mlir.ir.building import value
from tuner.mlir.ir.reading import walk
from tuner.payload.gpu import gpu_payload_mlir, scratch_in

READS = ("nvgpu.ldmatrix", "vector.load")


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
    def after_the_barrier(self) -> list[Op]:
        body = self.body
        return body[body.index(self.one("gpu.barrier")) + 1 :]


Change = Callable[[Rotated], None]


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
    *reads, end = rotated.after_the_barrier
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
    return [op.results[0] for op in rotated.after_the_barrier if op.name in READS]


def read_before_the_wait(rotated: Rotated) -> None:
    """The wait and the barrier come behind the reads of the next tile."""
    reads = [op for op in rotated.after_the_barrier if op.name in READS]
    rotated.one("gpu.barrier").move_after(reads[-1])
    rotated.one("nvgpu.device_async_wait").move_after(reads[-1])


def commit_after_the_wait(rotated: Rotated) -> None:
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


def broken(one: GpuPoint, change: Change) -> KernelProgram:
    """Compiles a point whose loop is changed behind the script."""
    text = one.script()
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(gpu_payload_mlir(one.problem, scratch_in(text, one.problem)), "payload")
        transform.apply_script(module, transform.parse(text, "script"))
        (loop,) = walk(module, "scf.for")
        change(Rotated(loop))
        assert module.operation.verify()
        return lower_to_program(module, chip_of(one.chip), buffers_of(one.problem))


OF_COPIES: tuple[Change, ...] = (
    drop_wait,
    wait_one_step_late,
    barrier_before_wait,
    commit_after_the_wait,
    count_a_stage_too_few,
)
OF_READS: tuple[Change, ...] = (
    drop_barrier,
    read_the_stage_of_this_tile,
    use_fragments_one_step_late,
    read_before_the_wait,
)
