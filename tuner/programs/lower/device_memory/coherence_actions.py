"""The actions that ``CoherenceWalk`` calls while it walks a function in the order of execution."""

import abc

from tuner.mlir.bindings import Block, Op
from tuner.programs.lower.device_memory.validity import Location, Side


class AbstractActions(abc.ABC):
    """What ``CoherenceWalk`` calls while it walks a function: copy, launch, allocate, deallocate."""

    @abc.abstractmethod
    def fetch(self, location: Location, before: Op) -> None:
        """Makes an alias set valid in host or device memory before the operation ``before``.

        ``location`` is (number of the alias set, memory that gets the current contents).
        """

    @abc.abstractmethod
    def launch(self, launch: Op) -> None:
        """Makes a ``gpu.launch_func`` take its operands from device memory."""

    @abc.abstractmethod
    def copy(self, copy: Op, source: Side, target: Side) -> None:
        """Makes a ``memref.copy`` copy from ``source`` memory to ``target`` memory.

        One of them, or both, is the device.
        """

    @abc.abstractmethod
    def touch_on_host(self, alias_set: int) -> None:
        """Records that host code uses the host memory of an alias set, given by its number."""

    @abc.abstractmethod
    def define(self, allocation: Op) -> None:
        """Handles an allocation in the program, after which its buffer exists."""

    @abc.abstractmethod
    def release(self, deallocation: Op) -> None:
        """Handles a ``memref.dealloc`` in the program: frees its buffer in device memory too."""

    @abc.abstractmethod
    def leave(self, block: Block) -> None:
        """Frees the device memory of buffers that go out of scope at the end of a block."""


class FetchRecorder(AbstractActions):
    """Actions that change nothing and only record fetches, to look ahead in loops and branches."""

    def __init__(self) -> None:
        self.fetched: set[Location] = set()

    def fetch(self, location: Location, before: Op) -> None:
        """Adds ``location`` to ``fetched``: (number of an alias set, host or device memory)."""
        self.fetched.add(location)

    def launch(self, launch: Op) -> None:
        """Does nothing: a lookahead leaves the launch unchanged."""
        return

    def copy(self, copy: Op, source: Side, target: Side) -> None:
        """Does nothing: a lookahead leaves the copy unchanged."""
        return

    def touch_on_host(self, alias_set: int) -> None:
        """Does nothing: a lookahead records only the locations that would be fetched."""
        return

    def define(self, allocation: Op) -> None:
        """Does nothing: a lookahead records only the locations that would be fetched."""
        return

    def release(self, deallocation: Op) -> None:
        """Does nothing: a lookahead leaves the deallocation unchanged."""
        return

    def leave(self, block: Block) -> None:
        """Does nothing: a lookahead creates no deallocations."""
        return
