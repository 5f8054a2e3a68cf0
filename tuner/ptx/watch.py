"""What watches the accesses of some blocks while they run."""

from tuner.ptx.clocks import Clocks
from tuner.ptx.conflicts import ConflictCounter
from tuner.ptx.defects import Defect, Fault
from tuner.ptx.dtypes import Indices
from tuner.ptx.geometry import Geometry
from tuner.ptx.hazards import HazardLog
from tuner.ptx.instruction import Instruction
from tuner.ptx.unordered import Rewrite, Unordered, report


class Watch:
    """The clocks of the threads, the logs of the launch, and the instruction that runs now."""

    def __init__(self, clocks: Clocks, log: HazardLog, conflicts: ConflictCounter, idle: Instruction) -> None:
        self.clocks = clocks
        self.log = log
        self.conflicts = conflicts
        self.instruction = idle

    @property
    def geometry(self) -> Geometry:
        """Returns which thread each lane is."""
        return self.clocks.geometry

    def report(
        self,
        found: list[Unordered],
        lanes: Indices,
        memory: str,
        cell_bytes: int,
        rewrite: Rewrite | None = None,
    ) -> None:
        """Adds unordered accesses of threads to the log; ``memory`` is named in the example."""

        def example(access: int, cell: int, earlier: str) -> str:
            who = self.geometry.who(int(lanes[min(access, len(lanes) - 1)]))
            return f"{who} at {memory} byte {cell * cell_bytes}: not ordered after an earlier {earlier}"

        if found:
            report(self.log, self.instruction, found, example, rewrite)

    def out_of_bounds(self, lane: int, reason: str) -> Fault:
        """Returns the fault of a thread that leaves a memory."""
        return Fault(Defect.OUT_OF_BOUNDS, f"{self.geometry.who(lane)}: {reason}")

    def require_aligned(self, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Raises Fault when an address is no multiple of the access's size."""
        is_off = addresses % size_bytes != 0
        if is_off.any():
            worst = int(is_off.argmax())
            who, address = self.geometry.who(int(lanes[worst])), int(addresses[worst])
            raise Fault(
                Defect.MISALIGNED,
                f"{who}: found address {address:#x}, allowed multiples of {size_bytes} bytes",
            )
