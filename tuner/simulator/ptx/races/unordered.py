"""Unordered accesses as values, and their classification as hazards: races or silent stores."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tuner.simulator.ptx.defects import Defect
from tuner.simulator.ptx.dtypes import Bools, Indices
from tuner.simulator.ptx.instruction import Instruction
from tuner.simulator.ptx.races.hazards import HazardLog

SAME_INSTRUCTION = "write of the same instruction"
RACES = (Defect.SHARED_RACE, Defect.GLOBAL_RACE, Defect.BLOCK_RACE)


@dataclass(frozen=True)
class Unordered:
    """Accesses of lanes, of one kind of defect, not ordered after earlier accesses to the same cells."""

    kind: Defect
    is_bad: Bools  # [access, cell of the access]
    cells: Indices  # [access, cell of the access]
    earlier: str  # "write", "read", ...


@dataclass(frozen=True)
class SilentStores:
    """Which cells a store leaves with the value that they have: silent stores (Lepak and Lipasti, ISCA 2000).

    Per written cell [access, cell]: whether its new value equals the one before the instruction, and the one
    that all lanes of the instruction leave.
    """

    is_as_before: Bools  # equal to the value before the instruction
    is_as_after: Bools  # equal to the value after all lanes of the instruction


def only(found: list[Unordered], where: Bools) -> list[Unordered]:
    """Returns the unordered accesses of ``found`` to cells where ``where`` [access, cell] is True."""
    kept = [Unordered(one.kind, one.is_bad & where, one.cells, one.earlier) for one in found]
    return [one for one in kept if one.is_bad.any()]


def report(
    log: HazardLog,
    instruction: Instruction,
    found: list[Unordered],
    example: Callable[[int, int, str], str],  # (access, cell, earlier) -> text of the example
    silent: SilentStores | None = None,
) -> None:
    """Logs unordered accesses of ``instruction`` as hazards, and silent stores among them as benign hazards.

    A silent store writes the value that the memory has, so that its order has no effect. ``example``
    describes (access, cell, kind of the earlier access), for the first hazard.
    """
    for one in found:
        harmless = np.zeros_like(one.is_bad)
        if silent is not None and one.kind in RACES:
            is_same = silent.is_as_after if one.earlier == SAME_INSTRUCTION else silent.is_as_before
            harmless = one.is_bad & is_same
        for kind, bad in ((Defect.SAME_VALUE, harmless), (one.kind, one.is_bad & ~harmless)):
            if not bad.any():
                continue
            access, position = np.argwhere(bad)[0]
            cell, earlier = int(one.cells[access, position]), one.earlier
            words = partial(example, int(access), cell, earlier)
            log.report(kind, instruction, words, int(bad.sum()))
