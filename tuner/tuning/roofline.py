"""Measures the machine's limits in a child process, where nothing else of ours runs."""

from collections.abc import Callable

from tuner.machine import Machine, Roofline


class RooflineCall:
    """Serves one measurement."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        """Takes what every service is given; a measurement that is alone announces nothing."""

    def measure(self, dtype: str, threads: int, machine: Machine) -> Roofline:
        """Returns multiply-adds and bytes per second that so many threads reach."""
        from tuner.runtime.roofline import measure_roofline

        return measure_roofline(dtype, threads, machine)
