"""The actions that ``CoherenceWalk`` calls while it walks a function in the order of execution."""

import abc

from tuner.mlir.bindings import Block, Op
from tuner.programs.lower.device_memory.validity import Location, Side


class AbstractActions(abc.ABC):
    """The actions at each operation that the walk visits: copies, launches, allocations, deallocations."""

    @abc.abstractmethod
    def fetch(self, location: Location, before: Op) -> None:
        """Makes an alias set valid on one side, before an operation."""

    @abc.abstractmethod
    def launch(self, launch: Op) -> None:
        """Makes a ``gpu.launch_func`` take its operands from device memory."""

    @abc.abstractmethod
    def copy(self, copy: Op, source: Side, target: Side) -> None:
        """Makes a ``memref.copy`` copy between these two sides, of which at least one is the device."""

    @abc.abstractmethod
    def touch_on_host(self, alias_set: int) -> None:
        """Records that the host memory of an alias set is used."""

    @abc.abstractmethod
    def define(self, allocation: Op) -> None:
        """Records that an allocation defines a buffer."""

    @abc.abstractmethod
    def release(self, deallocation: Op) -> None:
        """Frees a buffer where the program frees it."""

    @abc.abstractmethod
    def leave(self, block: Block) -> None:
        """Frees the buffers that go out of scope at the end of a block."""


class FetchRecorder(AbstractActions):
    """Records the locations that would be fetched, without changes: lookahead for loops and branches."""

    def __init__(self) -> None:
        self.fetched: set[Location] = set()

    def fetch(self, location: Location, before: Op) -> None:
        self.fetched.add(location)

    def launch(self, launch: Op) -> None:
        return

    def copy(self, copy: Op, source: Side, target: Side) -> None:
        return

    def touch_on_host(self, alias_set: int) -> None:
        return

    def define(self, allocation: Op) -> None:
        return

    def release(self, deallocation: Op) -> None:
        return

    def leave(self, block: Block) -> None:
        return
