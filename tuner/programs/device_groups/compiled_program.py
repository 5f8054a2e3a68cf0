"""Compiles a program of groups for a GPU: kernels, host code, and what stays on the device between calls."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.chips import Chip
from tuner.core.device_program import Assemble, BufferType, DeviceGroup, DeviceProgram, ResidentBuffer
from tuner.core.grouped_program import WEIGHT, Buffer, GroupedProgram
from tuner.core.numpy_types import DTYPES
from tuner.programs.device_groups.grouped_host import HostOfGroups, host_of_groups
from tuner.programs.device_groups.script_kernels import ScriptOf
from tuner.programs.lower.device_lowering import lower_device_program
from tuner.programs.lower.device_options import DeviceOptions
from tuner.programs.lower.last_use import free_after_last_use
from tuner.programs.lower.work_to_kernels import launch_loops

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DeviceTarget:
    """What a program of groups is compiled for."""

    chip: Chip
    options: DeviceOptions
    assemble: Assemble | None  # None: the program contains PTX
    script_of: ScriptOf  # returns the script of a matmul; None where no strategy supports it


def compile_for_device(
    program: GroupedProgram,
    weights: Sequence[Array],
    entry: str,
    target: DeviceTarget,
    *,
    is_checked: bool,
) -> DeviceProgram:
    """Compiles a program of groups in the current MLIR context.

    Args:
        program: the groups.
        weights: the arrays of its weight buffers, in the order of their numbers, after ``init``.
        entry: the name of the program's function.
        target: what the program is compiled for.
        is_checked: whether the host's loops assert that each access is in bounds.

    Raises CandidateError where a group cannot be computed, or the lowering fails.
    """
    host = host_of_groups(program, entry, target.chip, target.script_of)
    launch_loops(host.payload)
    free_after_last_use(host.payload.function)
    made = lower_device_program(
        host.payload.module, entry, target.chip, target.options, target.assemble, is_checked=is_checked
    )
    count = len(program.arguments)
    return replace(
        made,
        arguments=made.arguments[:count],
        written=made.written[:count],
        resident=tuple(_resident(buffer, weights) for buffer in host.resident),
        groups=_groups(program, host),
    )


def _groups(program: GroupedProgram, host: HostOfGroups) -> tuple[DeviceGroup, ...]:
    return tuple(
        DeviceGroup(group.kind, group.ops, reason)
        for group, reason in zip(program.groups, host.reasons, strict=True)
    )


def _resident(buffer: Buffer, weights: Sequence[Array]) -> ResidentBuffer:
    kind = BufferType(buffer.type.element, buffer.type.shape)
    if buffer.owner == WEIGHT:
        return ResidentBuffer(kind, np.ascontiguousarray(weights[buffer.number]).tobytes(), is_written=False)
    assert buffer.padding is not None
    padding = np.array(buffer.padding).astype(DTYPES[buffer.type.element])
    return ResidentBuffer(kind, np.full(buffer.type.shape, padding).tobytes(), is_written=True)
