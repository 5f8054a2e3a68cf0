"""Reports of memory accesses (races, bounds, alignment), with the instruction and the threads."""

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Indices
from tuner.simulator.ptx.geometry import Geometry
from tuner.simulator.ptx.instruction import Instruction
from tuner.simulator.ptx.races.access_sample import AccessSample
from tuner.simulator.ptx.races.bank_conflicts import ConflictCounter
from tuner.simulator.ptx.races.clocks import Clocks
from tuner.simulator.ptx.races.hazards import HazardLog
from tuner.simulator.ptx.races.unordered import SilentStores, Unordered, report


class Watch:
    """The instruction that executes, and what its memory accesses are checked with: vector clocks and logs.

    Shared by all memories of resident blocks.
    """

    def __init__(
        self,
        clocks: Clocks,
        log: HazardLog,
        conflicts: ConflictCounter,
        idle: Instruction,
        sample: AccessSample | None = None,
    ) -> None:
        self.clocks = clocks
        self.log = log
        self.conflicts = conflicts
        self.instruction = idle
        self._sample = sample

    @property
    def geometry(self) -> Geometry:
        """Returns the geometry of the resident blocks: the thread and the block of each lane."""
        return self.clocks.geometry

    def count_shared(self, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Counts the wavefronts of an access to shared memory, then samples the access as ``note`` does.

        ``addresses`` are byte addresses, ``size_bytes`` the bytes of each lane.
        """
        self.conflicts.count(self.instruction, lanes, addresses, size_bytes)
        self.note(lanes, addresses, size_bytes)

    def note(self, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Records an access of ``lanes`` in the launch's sample of accesses; does nothing without a sample.

        ``addresses`` are byte addresses, ``size_bytes`` the bytes of each lane.
        """
        if self._sample is not None:
            self._sample.note(self.instruction, lanes, addresses, size_bytes)

    def report(
        self,
        found: list[Unordered],
        lanes: Indices,
        memory: str,
        cell_bytes: int,
        silent: SilentStores | None = None,
    ) -> None:
        """Logs unordered accesses of ``lanes`` as hazards of the current instruction.

        ``memory`` is "shared" or the name of a buffer, for the message; ``cell_bytes`` is the size of a cell.
        ``silent`` marks stores that keep a value, which are logged as benign.
        """

        def example(access: int, cell: int, earlier: str) -> str:
            who = self.geometry.who(int(lanes[min(access, len(lanes) - 1)]))
            return f"{who} at {memory} byte {cell * cell_bytes}: not ordered after an earlier {earlier}"

        if found:
            report(self.log, self.instruction, found, example, silent)

    def out_of_bounds(self, lane: int, reason: str) -> Fault:
        """Returns, without raising, the Fault for an out-of-bounds access by ``lane``, with a ``reason``."""
        return Fault(Defect.OUT_OF_BOUNDS, f"{self.geometry.who(lane)}: {reason}")

    def require_aligned(self, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Raises Fault where one of the lanes' byte addresses is not a multiple of ``size_bytes``."""
        is_off = addresses % size_bytes != 0
        if is_off.any():
            worst = int(is_off.argmax())
            who, address = self.geometry.who(int(lanes[worst])), int(addresses[worst])
            raise Fault(
                Defect.MISALIGNED,
                f"{who}: found address {address:#x}, allowed multiples of {size_bytes} bytes",
            )
