"""What the walk asks for, where nothing is changed; what comes of it is in test_host_to_device_memory."""

from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

coherence = pytest.importorskip("tuner.programs.device_memory.coherence")
alias_sets = pytest.importorskip("tuner.mlir.effects.aliases")
device_buffers = pytest.importorskip("tuner.programs.device_memory.buffers")
kernel_effects = pytest.importorskip("tuner.mlir.effects.memory_effects")

M = "memref<4xf32>"
MODULE = text_beside(__file__, "MODULE")


def launch(kernel: str, buffer: str) -> str:
    grid = "(%c1, %c1, %c1)"
    return f"gpu.launch_func @m::@{kernel} blocks in {grid} threads in {grid} args({buffer} : {M})"


class RecordedActions:
    """Actions that record the calls of the walk."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def fetch(self, location: Any, before: Any) -> None:
        self.entries.append(f"{'abc'[location[0]]} to {location[1].value} before {before.name}")

    def launch(self, launch: Any) -> None:
        self.entries.append("launch")

    def copy(self, copy: Any, source: Any, target: Any) -> None:
        self.entries.append(f"copy from {source.value} to {target.value}")

    def touch_on_host(self, alias_set: int) -> None:
        self.entries.append(f"host looks at {'abc'[alias_set]}")

    def define(self, allocation: Any) -> None:
        self.entries.append("define")

    def release(self, deallocation: Any) -> None:
        self.entries.append("release")

    def leave(self, block: Any) -> None:
        self.entries.append("leave")


def entries(*body: str, managed: str = "ab") -> list[str]:
    """Walks over arguments, of which those named have device memory."""
    with parsed(MODULE.replace("BODY", "\n".join(body))) as module:
        function = module.body.operations[0].operation
        block = function.regions[0].blocks[0]
        known = alias_sets.AliasSets(function)
        arguments = [block.arguments["abc".index(name)] for name in managed]
        buffers = {
            value: device_buffers.MirroredBuffer(
                device_buffers.BufferKind.ARGUMENT, known.of(value), value, value, block, value
            )
            for value in arguments
        }
        recorded = RecordedActions()
        effects = kernel_effects.KernelEffects(module)
        coherence.CoherenceWalk(known, buffers, effects).function(function, recorded)
        return recorded.entries


UP, DOWN = "a to device before gpu.launch_func", "a to host before func.return"


def test_what_is_only_read_goes_one_way() -> None:
    assert entries(launch("read", "%a"), launch("read", "%a")) == [UP, "launch", "launch", "leave"]


def test_what_is_written_in_part_goes_both_ways() -> None:
    assert entries(launch("write", "%a")) == [UP, "launch", DOWN, "leave"]


def test_what_is_not_managed_is_left_alone() -> None:
    copy = f"memref.copy %c, %c : {M} to {M}"
    assert entries(copy, f"memref.store %x, %c[%c0] : {M}") == ["leave"]


@pytest.mark.parametrize(
    ("before", "copy", "found"),
    [
        ((), "%a, %b", "copy from host to device"),
        ((launch("read", "%a"),), "%a, %b", "copy from device to device"),
        ((launch("write", "%a"),), "%a, %c", "copy from device to host"),
        ((), "%c, %a", "copy from host to device"),
    ],
)
def test_a_copy_starts_where_its_source_is(before: tuple[str, ...], copy: str, found: str) -> None:
    assert found in entries(*before, f"memref.copy {copy} : {M} to {M}")


def test_a_copy_to_the_host_alone_stays_there() -> None:
    assert entries(f"memref.copy %a, %c : {M} to {M}") == ["host looks at a", "leave"]


def test_a_loop_that_reads_is_given_its_copy_in_front() -> None:
    loop = f"scf.for %i = %c0 to %n step %c1 {{ {launch('read', '%a')} }}"
    assert entries(loop) == ["a to device before scf.for", "launch", "leave", "leave"]


def test_host_code_after_a_kernel_in_a_loop_gets_a_copy_in_each_iteration() -> None:
    load = f"%v = memref.load %a[%c0] : {M}"
    loop = f"scf.for %i = %c0 to %n step %c1 {{ {launch('write', '%a')} {load} }}"
    expected = [
        "a to device before scf.for",
        "launch",
        "host looks at a",
        "a to host before memref.load",
        "leave",
    ]
    assert entries(loop) == [*expected, "leave"]


def test_a_path_that_does_not_touch_a_buffer_copies_nothing() -> None:
    branch = f"scf.if %flag {{ {launch('write', '%a')} }}"
    assert entries(branch) == [UP, "launch", "a to host before scf.yield", "leave", "leave"]
