"""Measures the machine's limits in a child process, where nothing else of ours runs."""

from collections.abc import Callable

from tuner.core.machine import Machine, Roofline


class RooflineCall:
    """Serves one measurement."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        """Takes what every service is given; a measurement that is alone announces nothing."""

    def measure(self, dtype: str, threads: int, machine: Machine) -> Roofline:
        """Returns multiply-adds and bytes per second that so many threads reach."""
        from tuner.runtime.cpu.roofline import measure_roofline

        return measure_roofline(dtype, threads, machine)


class GpuRooflineCall:
    """Serves one measurement on the GPU."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        """Takes what every service is given; a measurement that is alone announces nothing."""

    def measure(self, dtype: str) -> Roofline:
        """Returns the flop of the documents and the bytes per second that copies reach."""
        from tuner.runtime.cuda.probe import describe_gpu
        from tuner.runtime.cuda.roofline import gpu_roofline
        from tuner.targets.gpu.local_gpu import open_gpu

        here = describe_gpu()
        return gpu_roofline(open_gpu(here).device, here.facts, dtype)
