"""What ``CoherenceWalk`` tells of a function, in the order of its execution."""

import abc

from tuner.mlir.bindings import Block, Op
from tuner.programs.lower.device_memory.validity import Location, Side


class AbstractActions(abc.ABC):
    """What is done at each point where the walk finds something to do."""

    @abc.abstractmethod
    def fetch(self, location: Location, before: Op) -> None:
        """Makes an alias set valid on one side, in front of an operation."""

    @abc.abstractmethod
    def launch(self, launch: Op) -> None:
        """Lets a ``gpu.launch_func`` take its operands from device memory."""

    @abc.abstractmethod
    def copy(self, copy: Op, source: Side, target: Side) -> None:
        """Lets a ``memref.copy`` copy between these memories, one of which is the device's."""

    @abc.abstractmethod
    def touch_on_host(self, alias_set: int) -> None:
        """Notes that host memory of an alias set is used."""

    @abc.abstractmethod
    def define(self, allocation: Op) -> None:
        """Notes that a buffer begins to exist."""

    @abc.abstractmethod
    def release(self, deallocation: Op) -> None:
        """Frees a buffer where the program does."""

    @abc.abstractmethod
    def leave(self, block: Block) -> None:
        """Frees what goes out of scope at the end of a block."""


class FetchRecorder(AbstractActions):
    """Does nothing but record what would be fetched: so the walk looks ahead into loops and branches."""

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
