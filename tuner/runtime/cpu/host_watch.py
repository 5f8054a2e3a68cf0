"""Host conditions of a timing: counters before and after, and the times of a fixed reference kernel."""

import functools
import os
import statistics
from typing import final

from tuner.core.drift import drift
from tuner.core.host_conditions import HostConditions
from tuner.runtime.cpu.describe_host import describe_machine, load_average
from tuner.runtime.cpu.host_activity import HostActivity, read_activity
from tuner.runtime.cpu.panel_product import PanelProduct
from tuner.runtime.cpu.roofline import multiply_adds
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.timing import Stopwatch, sample, stopwatch_of

SURROUNDING_SAMPLES, SURROUNDING_REPEATS = 3, 8  # of the reference kernel, before and after; 8: some 1 ms
# Not timed, some 10 ms: after a matmul with AVX-512 a Xeon with AMX runs the reference kernel 18 % slower for
# 1 ms and 10 % slower for 4 ms more, then as after a pause.
SETTLING_REPEATS = 50


@final
class HostWatch:
    """Records the conditions under which a thread team is timed: processor counters, and two fixed kernels.

    ``reference_kernel(n)`` runs a loop of multiply-adds in registers n times and returns the seconds per
    call; ``panel_product(n)`` does so with a product of small packed panels. Both run on all threads of the
    team, so their times show when the host is slower.
    """

    def __init__(self, team: ThreadTeam) -> None:
        """Compiles the reference kernel; the panel product is compiled at first use."""
        self._threads = team.size
        self._team = team
        self._machine = describe_machine()
        (self._loops,) = multiply_adds(team, "f32", self._machine)
        self.reference_kernel: Stopwatch = stopwatch_of(self._loops.repeat)

    @functools.cached_property
    def panel_product(self) -> Stopwatch:
        """Returns a function that runs a fixed f32 product of small panels n times: seconds per call.

        The product runs on every thread of the team. It uses a core as a matmul does, so its time shows when
        the host is slower. Compiled at first use.
        """
        return stopwatch_of(PanelProduct(self._team, self._machine).repeat)

    def read(self, *helpers: int) -> HostActivity:
        """Reads the counters of processor time: of the host, this process and the processes ``helpers``.

        ``helpers``: ids of other processes whose work is timed too.
        """
        return read_activity((os.getpid(), *helpers))

    def sample_reference(self) -> list[float]:
        """Times the fixed reference kernel a few times; returns the seconds per call of each sample.

        There are 3 samples. First runs the kernel 50 times untimed, some 10 ms, so that the processor's clock
        can settle. Called before and after a timing.
        """
        self._loops.repeat(SETTLING_REPEATS)
        return [sample(self._loops.repeat, SURROUNDING_REPEATS) for _ in range(SURROUNDING_SAMPLES)]

    def conditions(
        self,
        before: HostActivity,
        after: HostActivity,
        anchor_s: tuple[float, ...],
        panel_product_s: tuple[float, ...] = (),
        *,
        turns_s: tuple[float, ...] = (),
    ) -> HostConditions:
        """Returns the host conditions of a timing, from counters and from samples of both fixed kernels.

        Args:
            before: Counters read before the timing.
            after: Counters read after the timing.
            anchor_s: Seconds per call of the reference kernel before and after the timing, in time order.
            panel_product_s: Seconds per call of the panel product, two or more; (): not timed.
            turns_s: Seconds per call of the reference kernel, interleaved with the timing; used for the drift
                only, since their level depends on what ran before each sample.
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
            anchor_s=statistics.median(anchor_s),
            anchor_drift=drift(turns_s or anchor_s),
            panel_product_s=statistics.quantiles(panel_product_s)[0] if panel_product_s else None,
        )
