"""Reads which processors this process may use, and their load, from Linux's /proc and control groups."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tuner.core.processors import PresentLoad, Processors

PROC = Path("/proc")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
WINDOW_S = 0.2  # twenty ticks of the counters: resolves a load of a twentieth of a processor
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
BUSY = (0, 1, 2, 5, 6)  # fields of a line of /proc/stat, proc_stat(5): user, nice, system, irq, softirq
STOLEN = 7


def usable_processors() -> Processors:
    """Returns how many processors the machine has and this process may use, and its control group's quota."""
    quota = min((*_quotas(), *_quota_of_version_1()), default=None)
    return Processors(os.cpu_count() or 1, len(os.sched_getaffinity(0)), quota)


def present_load(window_s: float = WINDOW_S, sleep: Callable[[float], None] = time.sleep) -> PresentLoad:
    """Measures the load of the processors that this process may use, for ``window_s`` seconds.

    Returns how many of them were busy and how many were given away by the hypervisor, on average, while this
    thread slept.
    """
    before_s, started_s = _processor_s(), time.monotonic()
    sleep(window_s)
    elapsed_s = max(time.monotonic() - started_s, TICK_S)
    busy_s, stolen_s = (after - before for before, after in zip(before_s, _processor_s(), strict=True))
    return PresentLoad(busy_s / elapsed_s, stolen_s / elapsed_s)


def _processor_s() -> tuple[float, float]:
    """Returns the cumulative busy and stolen seconds, each summed over the allowed processors."""
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    lines = [line.split() for line in _text(PROC / "stat").splitlines()]
    counters = [
        [int(number) for number in options[1:9]] for options in lines if options and options[0] in names
    ]
    busy = sum(numbers[field] for numbers in counters for field in BUSY)
    return busy * TICK_S, sum(numbers[STOLEN] for numbers in counters) * TICK_S


def _quotas() -> Iterator[float]:
    """Yields the quotas, in processors, of this process's control group and its ancestors; cgroups(7), v2."""
    paths = [line[3:] for line in _text(PROC / "self" / "cgroup").splitlines() if line.startswith("0::")]
    for path in paths:
        group = Path(path.strip().lstrip("/"))
        for folder in (group, *group.parents):
            options = _text(CONTROL_GROUPS / folder / "cpu.max").split()
            if len(options) == 2 and options[0] != "max":
                yield int(options[0]) / int(options[1])


def _quota_of_version_1() -> Iterator[float]:
    quota, period = (_text(CONTROL_GROUPS / "cpu" / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    if quota.strip() and period.strip() and int(quota) > 0:  # -1: no limit
        yield int(quota) / int(period)


def _text(path: Path) -> str:
    """Returns the text of a /proc or /sys file; '' where the file is missing."""
    try:
        return path.read_text()
    except OSError:
        return ""
