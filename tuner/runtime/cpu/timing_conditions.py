"""Conditions under which kernels are timed on the host: load, and times of reference kernels.

``HostWatch`` reads counters (``HostActivity``) and times reference kernels; callers do so before and after a
timing, and its method ``conditions`` makes ``HostConditions`` of both.
"""

import functools
import os
import statistics
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from tuner.core.machine import Machine
from tuner.core.records import HostConditions, drift
from tuner.runtime.cpu.host import (
    PROC,
    TICK_S,
    describe_machine,
    load_average,
    processor_s,
    text_of,
    with_siblings,
)
from tuner.runtime.cpu.jit import JittedModule, PackedArguments, loop_text
from tuner.runtime.cpu.memory import placed_empty
from tuner.runtime.cpu.roofline import multiply_adds
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.timing import Stopwatch, sample, stopwatch_of

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
    """Returns the counters of processor time of ``processors`` and of the processes with these ids."""
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
    """A reference kernel, whose time shows a slow host: a fixed product of small panels on each thread."""

    def __init__(self, team: ThreadTeam, machine: Machine) -> None:
        lanes = machine.vector_bytes // 4
        self._team = team
        self._code = JittedModule(product_text(lanes), ("panel_product",))
        address = self._code.addresses["panel_product"]
        sizes = (PANELS_OF_A * INNER * ROWS, PANELS_OF_B * INNER * VECTORS * lanes, ROWS * VECTORS * lanes)
        self.arrays = []  # of each thread: A, B and C
        self._arguments = []
        for _ in range(team.size):
            arrays = tuple(placed_empty((size,), np.dtype(np.float32)) for size in sizes)
            for array in arrays:
                array.fill(VALUE)
            self.arrays.append(arrays)
            self._arguments.append(PackedArguments(*(array.ctypes.data for array in arrays), ITERATIONS))
        self._calls = tuple((address, argument.address) for argument in self._arguments)

    def repeat(self, times: int) -> None:
        """Runs the product ``ITERATIONS`` times on each thread, ``times`` times in a row."""
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
        """Takes the ``processors`` that this process may use; None: those that this thread may use now.

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
        """Returns the counters of the host, this process, and timed processes with ids ``helpers``."""
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
