"""Unordered accesses as values, and how they become hazards: races, or the same value written twice."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tuner.ptx.defects import Defect
from tuner.ptx.dtypes import Bools, Indices
from tuner.ptx.hazards import HazardLog
from tuner.ptx.instruction import Instruction

SAME_INSTRUCTION = "write of the same instruction"
RACES = (Defect.SHARED_RACE, Defect.GLOBAL_RACE, Defect.BLOCK_RACE)


@dataclass(frozen=True)
class Unordered:
    """Cells that an access touches without being ordered after an earlier one."""

    kind: Defect
    is_bad: Bools  # [access, cell of the access]
    cells: Indices  # likewise
    earlier: str  # "write", "read", ...


@dataclass(frozen=True)
class Rewrite:
    """Whether writes leave memory as it is, for each cell [access, cell]."""

    is_as_before: Bools  # what was there already
    is_as_after: Bools  # what all lanes of the instruction together leave there


def only(found: list[Unordered], where: Bools) -> list[Unordered]:
    """Returns what was found within some cells."""
    kept = [Unordered(one.kind, one.is_bad & where, one.cells, one.earlier) for one in found]
    return [one for one in kept if one.is_bad.any()]


def report(
    log: HazardLog,
    instruction: Instruction,
    found: list[Unordered],
    example: Callable[[int, int, str], str],  # access, cell, earlier -> who touches what
    rewrite: Rewrite | None = None,
) -> None:
    """Adds what was found to the log; a write that changes nothing in any order is no race."""
    for one in found:
        harmless = np.zeros_like(one.is_bad)
        if rewrite is not None and one.kind in RACES:
            is_same = rewrite.is_as_after if one.earlier == SAME_INSTRUCTION else rewrite.is_as_before
            harmless = one.is_bad & is_same
        for kind, bad in ((Defect.SAME_VALUE, harmless), (one.kind, one.is_bad & ~harmless)):
            if not bad.any():
                continue
            access, position = np.argwhere(bad)[0]
            cell, earlier = int(one.cells[access, position]), one.earlier
            words = partial(example, int(access), cell, earlier)
            log.report(kind, instruction, words, int(bad.sum()))
