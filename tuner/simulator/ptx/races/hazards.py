"""The log of hazards: one entry per kind and instruction."""

from collections.abc import Callable

from tuner.simulator.ptx.defects import Defect, Hazard
from tuner.simulator.ptx.instruction import Instruction


class HazardLog:
    """The hazards of a launch recorded so far: a count and an example per kind and instruction."""

    def __init__(self) -> None:
        self._found: dict[tuple[Defect, Instruction | None], tuple[str, int]] = {}

    def report(
        self, kind: Defect, instruction: Instruction | None, example: Callable[[], str], count: int = 1
    ) -> None:
        """Adds ``count`` hazards of ``kind`` at ``instruction``; None: at the end of the kernel.

        ``example`` returns a description; it is called only for the first report of this kind and
        instruction.
        """
        key = (kind, instruction)
        text, before = self._found[key] if key in self._found else (example(), 0)
        self._found[key] = (text, before + count)

    def hazards(self) -> tuple[Hazard, ...]:
        """Returns the recorded hazards by line and kind; those at the end of the kernel have line 0."""
        found = []
        for (kind, instruction), (example, count) in self._found.items():
            line = instruction.line if instruction else 0
            text = instruction.short_text if instruction else "end of the kernel"
            found.append(Hazard(kind, line, text, example, count))
        return tuple(sorted(found, key=lambda hazard: (hazard.line, hazard.kind.value)))
