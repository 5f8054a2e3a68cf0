"""The hazards of a launch, such as data races: a log with one entry per kind and instruction."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tuner.gpu.ptxsim.ptx.defects import Defect, Hazard
from tuner.gpu.ptxsim.ptx.dtypes import Array, Bools, Indices
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction

SAME_INSTRUCTION = "write of the same instruction"
RACES = (Defect.SHARED_RACE, Defect.GLOBAL_RACE, Defect.BLOCK_RACE)


class HazardLog:
    """The hazards of a launch so far: a count and an example per kind and instruction."""

    def __init__(self) -> None:
        self._found: dict[tuple[Defect, Instruction | None], tuple[str, int]] = {}

    def report(
        self, kind: Defect, instruction: Instruction | None, example: Callable[[], str], count: int = 1
    ) -> None:
        """Adds ``count`` hazards at ``instruction``; None: at the end of the kernel.

        ``example`` returns a text, and is called for the first hazard of a kind at an instruction.
        """
        key = (kind, instruction)
        if key not in self._found:
            self._found[key] = (example(), 0)
        text, before = self._found[key]
        self._found[key] = (text, before + count)

    def hazards(self) -> tuple[Hazard, ...]:
        """Returns the hazards by line and kind; those at the end of the kernel have line 0."""
        hazards = []
        for (kind, instruction), (example, count) in self._found.items():
            line = 0
            text = "end of the kernel"
            if instruction is not None:
                line = instruction.line
                text = instruction.short_text
            hazards.append(Hazard(kind, line, text, example, count))
        return tuple(sorted(hazards, key=lambda hazard: (hazard.line, hazard.kind.value)))


@dataclass(frozen=True)
class Unordered:
    """Accesses of one kind of defect: not ordered after earlier ones to the same cells, or uninitialised."""

    kind: Defect
    is_bad: Bools  # [access, cell of the access]
    cells: Indices  # [access, cell of the access]
    earlier: str  # "write", "read", ...


@dataclass(frozen=True)
class SilentStores:
    """Which cells a store leaves as they are: silent stores (Lepak and Lipasti, ISCA 2000).

    For each written cell [access, cell]: whether its new value equals the one before, and the one after all
    lanes' writes.
    """

    is_as_before: Bools  # equal to the value before the instruction
    is_as_after: Bools  # equal to the value after all lanes of the instruction

    @classmethod
    def of(cls, values: Array, before: Array, after: Array) -> "SilentStores":
        """Compares stored ``values`` with memory [access, cell, byte] before and after the instruction."""
        mine = np.ascontiguousarray(values).view(np.uint8).reshape(before.shape)
        return cls((mine == before).all(axis=2), (mine == after).all(axis=2))


def only(found: list[Unordered], where: Bools) -> list[Unordered]:
    """Returns the unordered accesses of ``found`` to cells where ``where`` [access, cell] is True."""
    kept = [replace(accesses, is_bad=accesses.is_bad & where) for accesses in found]
    return [accesses for accesses in kept if accesses.is_bad.any()]


def report(
    log: HazardLog,
    instruction: Instruction,
    found: list[Unordered],
    example: Callable[[int, int, str], str],  # (access, cell, earlier) -> text of the example
    silent: SilentStores | None = None,
) -> None:
    """Logs unordered accesses of ``instruction`` as hazards; races of silent stores as benign ones."""
    for accesses in found:
        harmless = np.zeros_like(accesses.is_bad)
        if silent is not None and accesses.kind in RACES:
            is_same = silent.is_as_after if accesses.earlier == SAME_INSTRUCTION else silent.is_as_before
            harmless = accesses.is_bad & is_same
        for kind, bad in ((Defect.SAME_VALUE, harmless), (accesses.kind, accesses.is_bad & ~harmless)):
            if not bad.any():
                continue
            access, position = np.argwhere(bad)[0]
            first = partial(example, int(access), int(accesses.cells[access, position]), accesses.earlier)
            log.report(kind, instruction, first, int(bad.sum()))
