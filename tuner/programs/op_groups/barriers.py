"""Where the threads of a program wait for one another: before a group that needs what another thread does.

A group is divided among all threads, or the first thread runs it alone. Two groups of which one writes bytes
that the other one reads or writes must not run at the same time, unless the first thread runs both. Bytes
count, not buffers: buffers whose lifetimes do not overlap share memory of the arena.

    group 0 (all)    writes %a
    group 1 (all)    writes %b           no barrier: it does not touch %a
    group 2 (first)  reads %a, writes %c    barrier
    group 3 (first)  reads %c, writes %a    none: the same thread
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuner.core.element_types import number_type
from tuner.core.grouped_program import GroupCode, OpGroup, View, WeightPacking
from tuner.programs.op_groups.memory_plan import view_end

Place = tuple[int, int]  # a pointer of the frame, and bytes after it


@dataclass(frozen=True)
class Bytes:
    """Bytes that a group reads or writes: of a pointer of the frame, from ``start`` to before ``stop``."""

    slot: int
    start: int
    stop: int
    is_write: bool

    def conflicts(self, other: "Bytes") -> bool:
        """Returns whether one access writes what the other one touches."""
        is_same = self.slot == other.slot and self.start < other.stop and other.start < self.stop
        return is_same and (self.is_write or other.is_write)


def waits(
    groups: Sequence[OpGroup], codes: Sequence[GroupCode], places: Sequence[Sequence[Place]]
) -> tuple[bool, ...]:
    """Returns for each group whether all threads wait for one another before it.

    ``places`` has where each input and then each output of each group begins.
    """
    found = []
    pending: list[tuple[bool, tuple[Bytes, ...]]] = []  # since the last barrier: is divided, bytes
    for group, code, place in zip(groups, codes, places, strict=True):
        touched = tuple(_touched(group, code, place))
        is_barrier = any(
            (is_divided or code.is_divided)
            and any(one.conflicts(other) for one in earlier for other in touched)
            for is_divided, earlier in pending
        )
        pending = [*([] if is_barrier else pending), (code.is_divided, touched)]
        found.append(is_barrier)
    return tuple(found)


def _touched(group: OpGroup, code: GroupCode, places: Sequence[Place]) -> Iterator[Bytes]:
    for view, packing, place in zip(group.inputs, code.packings, places, strict=False):
        yield _bytes(view, packing, place, is_write=False)
    for view, place in zip(group.outputs, places[len(group.inputs) :], strict=True):
        yield _bytes(view, None, place, is_write=True)


def _bytes(view: View, packing: WeightPacking | None, place: Place, *, is_write: bool) -> Bytes:
    slot, start = place
    if packing is not None:  # nothing writes weights
        return Bytes(slot, start, start, is_write)
    size = (view_end(view) - view.offset) * number_type(view.type.element).bytes
    return Bytes(slot, start, start + max(size, 0), is_write)
