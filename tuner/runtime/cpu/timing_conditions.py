"""Conditions under which kernels are timed on the host: load, reference kernels, state of the caches.

``HostWatch`` records load and times of reference kernels; ``Eviction`` and ``RotatedCalls`` make caches cold.
"""

import ctypes
import functools
import os
import statistics
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuner.core.machine import HostConditions, Machine
from tuner.core.problem import COLD, WEIGHTS_COLD, Problem, TextProblem
from tuner.core.records import drift
from tuner.runtime.cpu.host import (
    PROC,
    TICK_S,
    describe_machine,
    load_average,
    processor_s,
    text_of,
    with_siblings,
)
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments, loop_text, shipped_module
from tuner.runtime.cpu.memory import placed_empty
from tuner.runtime.cpu.roofline import multiply_adds
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.timing import Stopwatch, sample, stopwatch_of

LINE_BYTES = 64
# Reading so many bytes of other weights, in sizes of a cache, evicts a weight from that cache.
EVICTING_L2S = 2
EVICTING_L3S = 3
COPIES_LIMIT = 256  # of small weights that are read one after the other; a power of two
WEIGHTS = slice(1, 2)  # of the operands A, B[, bias], C
EVICTED = {WEIGHTS_COLD: WEIGHTS, COLD: slice(None)}  # Problem.cache -> operands
THROTTLING = (  # of control groups, versions 2 and 1: file, key, seconds per unit
    (Path("/sys/fs/cgroup/cpu.stat"), "throttled_usec", 1e-6),
    (Path("/sys/fs/cgroup/cpu/cpu.stat"), "throttled_time", 1e-9),
)
# fields of /proc/PID/stat after the name, proc_pid_stat(5)
USER_TICKS = 11
SYSTEM_TICKS = 12
# Sizes, as in panel_product.mlir
# of C in registers: 12 sums, so that AVX2 has registers left for A and B
ROWS = 6
VECTORS = 2
INNER = 256  # length of the panels
# B has 128 KiB with AVX-512: more than an L1 cache
PANELS_OF_A = 4
PANELS_OF_B = 4
ITERATIONS = 20  # of the whole product per repeat, some 0.25 ms
VALUE = 0.5  # of each element of A and B
# of the reference kernel, before and after; 8: some 1 ms
SURROUNDING_SAMPLES = 3
SURROUNDING_REPEATS = 8
# Not timed, some 10 ms: after a matmul with AVX-512 a Xeon with AMX runs the reference kernel 18 % slower for
# 1 ms and 10 % slower for 4 ms more, then as after a pause.
SETTLING_REPEATS = 50
ENTRY = "rotated_call"


class Eviction:
    """A callable that evicts arrays from the caches of all cores (Intel SDM, CLFLUSH)."""

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """The arrays are contiguous; they are evicted, not changed, by each call."""
        self._evict = CompiledFunction(shipped_module("evict", "evict").addresses["evict"])
        self.arrays = tuple(arrays)
        self._arguments = [PackedArguments(*lines_of(array)) for array in arrays]

    def __call__(self) -> None:
        for arguments in self._arguments:
            self._evict(arguments)


def eviction_of(problem: Problem, operands: Sequence[npt.NDArray[Any]]) -> Eviction | None:
    """Returns the eviction of a problem's operands to call before each timed call.

    None for warm caches, and for a fusion with cold weights, whose ``RotatedCalls`` read other copies.
    """
    if isinstance(problem, TextProblem) and problem.cache == WEIGHTS_COLD:
        return None
    evicted = EVICTED.get(problem.cache)
    if evicted is None:
        return None
    return Eviction(operands[evicted])


def lines_of(array: npt.NDArray[Any]) -> tuple[int, int]:
    """Returns the address of an array's first cache line, and the number of lines that the array touches."""
    start = array.ctypes.data // LINE_BYTES * LINE_BYTES
    end = array.ctypes.data + array.nbytes
    return start, -(-(end - start) // LINE_BYTES)


@dataclass(frozen=True)
class HostActivity:
    """Cumulative counters of processor time, of processors and of processes; 0 for a missing counter."""

    clock_s: float
    busy_s: float  # of the given processors
    stolen_s: float  # of the given processors, by a hypervisor
    own_s: float  # processor time of the given processes
    waited_s: float  # time that the threads of the given processes were ready to run and did not run
    throttled_s: float  # of this control group


def read_activity(processes: tuple[int, ...], processors: Collection[int]) -> HostActivity:
    """Reads the counters of processor time of ``processors`` and of the processes with these ids."""
    busy_s, stolen_s = processor_s(processors)
    own_ticks = waited_ns = 0
    for process in processes:
        after_name = text_of(PROC / str(process) / "stat").rpartition(")")[2].split()
        own_ticks += sum(int(after_name[field]) for field in (USER_TICKS, SYSTEM_TICKS) if after_name)
        # nanoseconds on run queues: sched-stats.txt of the Linux kernel's documentation
        for folder in (PROC / str(process) / "task").glob("*"):
            if counters := text_of(folder / "schedstat").split():
                waited_ns += int(counters[1])
    throttled_s = 0.0
    for path, key, unit_s in THROTTLING:
        fields = text_of(path).split()
        if key in fields:
            throttled_s = int(fields[fields.index(key) + 1]) * unit_s
            break
    return HostActivity(
        clock_s=time.monotonic(),
        busy_s=busy_s,
        stolen_s=stolen_s,
        own_s=own_ticks * TICK_S,
        waited_s=waited_ns * 1e-9,
        throttled_s=throttled_s,
    )


def thread_waited_s() -> float:
    """Returns the cumulative seconds that this thread was ready to run but did not; 0.0 without a counter."""
    counters = text_of(PROC / "thread-self" / "schedstat").split()
    if counters:
        return int(counters[1]) * 1e-9
    return 0.0


# A fixed product of small packed panels, which uses a core's resources as a matmul does.
#
# Multiply-adds alone do not. On a shared Cascade Lake, matmuls have two speeds 7 to 8 % apart for seconds at
# a time, and so has this product, while a loop of multiply-adds in registers has one speed. The work is the
# same in every version of the tuner.


@final
class PanelProduct:
    """A reference kernel: a fixed product of small packed panels on each thread.

    Slower when the host is slower.
    """

    def __init__(self, team: ThreadTeam, machine: Machine) -> None:
        lanes = machine.vector_bytes // 4
        self._team = team
        self._code = JittedModule(product_text(lanes), ("panel_product",))
        address = self._code.addresses["panel_product"]
        sizes = (PANELS_OF_A * INNER * ROWS, PANELS_OF_B * INNER * VECTORS * lanes, ROWS * VECTORS * lanes)
        self.arrays = [
            tuple(placed_empty((size,), np.dtype(np.float32)) for size in sizes) for _ in range(team.size)
        ]
        for array in chain.from_iterable(self.arrays):
            array.fill(VALUE)
        self._arguments = [
            PackedArguments(*(array.ctypes.data for array in arrays), ITERATIONS) for arrays in self.arrays
        ]
        self._calls = tuple((address, argument.address) for argument in self._arguments)

    def repeat(self, times: int) -> None:
        self._team.repeat(self._calls, times)


def product_text(lanes: int) -> str:
    """Returns MLIR text of the panel product, with vectors of ``lanes`` f32.

    Its function multiplies each panel of A by each panel of B.
    """
    text = loop_text("panel_product").replace("FIRST", str([0] * lanes))  # the mask of a broadcast
    return f"!vector = vector<{lanes}xf32>\n{text}"


@final
class HostWatch:
    """Records conditions of a team's timing: counters, and kernels that show when the host is slower."""

    def __init__(self, team: ThreadTeam, processors: Collection[int] | None = None) -> None:
        """Takes the ``processors`` that this process may use; None: those of this unpinned thread.

        Load elsewhere on the machine is not a disturbance: a container's neighbours have cores of their own.
        """
        self._processors = with_siblings(os.sched_getaffinity(0) if processors is None else processors)
        self._threads = team.size
        self._team = team
        self._machine = describe_machine()
        (self._loops,) = multiply_adds(team, "f32", self._machine)
        self.reference_kernel: Stopwatch = stopwatch_of(self._loops.repeat)

    @functools.cached_property
    def panel_product(self) -> Stopwatch:
        """Returns a stopwatch, repetitions -> seconds per call, of the panel product on all threads.

        Compiled at first use.
        """
        return stopwatch_of(PanelProduct(self._team, self._machine).repeat)

    def read(self, *helpers: int) -> HostActivity:
        """Reads the counters of the host, of this process, and of timed processes with ids ``helpers``."""
        return read_activity((os.getpid(), *helpers), self._processors)

    def sample_reference(self) -> list[float]:
        """Returns seconds per call of 3 samples of the reference kernel, after 50 untimed calls."""
        self._loops.repeat(SETTLING_REPEATS)
        return [sample(self._loops.repeat, SURROUNDING_REPEATS) for _ in range(SURROUNDING_SAMPLES)]

    def conditions(
        self,
        before: HostActivity,
        after: HostActivity,
        reference_s: tuple[float, ...],
        panel_product_s: tuple[float, ...] = (),
        *,
        interleaved_s: tuple[float, ...] = (),
    ) -> HostConditions:
        """Returns the conditions of a timing, from counters before and after, and reference kernels' times.

        ``reference_s``: seconds per call of the reference kernel before and after the timing.
        ``interleaved_s``: during it, used for drift only, as their level depends on what ran before each
        sample. ``panel_product_s``: seconds per call of the panel product.
        """
        elapsed_s = max(after.clock_s - before.clock_s, 1e-9)
        own_s = after.own_s - before.own_s
        busy_s = after.busy_s - before.busy_s
        return HostConditions(
            load_average=load_average(),
            others_cores=max(0.0, (busy_s - own_s) / elapsed_s),
            waited_share=max(0.0, (after.waited_s - before.waited_s) / elapsed_s / self._threads),
            stolen_share=(after.stolen_s - before.stolen_s) / elapsed_s / self._threads,
            throttled_share=(after.throttled_s - before.throttled_s) / elapsed_s,
            reference_s=statistics.median(reference_s),
            reference_drift=drift(interleaved_s or reference_s),
            panel_product_s=statistics.quantiles(panel_product_s)[0] if panel_product_s else None,
        )


# Calls of a function whose arguments change from call to call: copies of weights that have left the L2 cache.
#
# The weights of a model come from the last level of cache, or from memory, since all others were read since
# the call before. A kernel that is timed in a loop finds them in the second level. With copies that together
# are larger than that level, one used after the other, each call finds its copy evicted.


class RotatedCalls:
    """A compiled function that calls ``function`` with the next of ``arguments`` each time, round-robin.

    So that each call reads another copy of the weights, which the caches do not hold.
    """

    def __init__(self, function: int, arguments: tuple[PackedArguments, ...]) -> None:
        count = len(arguments)
        if not count or count & (count - 1):
            raise ValueError(f"arguments: found {count}, allowed a power of two")
        addresses = [argument.address for argument in arguments]
        self._state = (ctypes.c_uint64 * (3 + count))(0, count - 1, function, *addresses)
        self._arguments = arguments
        self._state_argument = PackedArguments(ctypes.addressof(self._state))
        code = shipped_module("rotated_calls", ENTRY)
        self.call = (code.addresses[ENTRY], self._state_argument.address)
