"""Compiled programs in IREE's runtime: results compared, calls timed."""

from typing import Any

import numpy as np

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.core.record import Verdict
from tuner.payload.reference import Inputs, compare, draw, draw_base
from tuner.runtime import timing

DRIVER = "local-sync"  # runs all work on the thread that calls


class IreeProduct:
    """The function ``product`` of a compiled program, with arguments in IREE's memory."""

    def __init__(self, code: bytes, problem: Problem, seed: int = 0) -> None:
        """Loads code of ``program_of(problem)``; draws A and B. Raises TunerError where IREE refuses."""
        from iree import runtime

        rng = np.random.default_rng(seed)
        self._inputs: Inputs = draw(problem, draw_base(problem, rng), rng)
        config = runtime.Config(DRIVER)
        context = runtime.SystemContext(config=config)
        try:
            context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
        except (RuntimeError, ValueError) as error:
            raise TunerError(f"IREE's runtime: {' '.join(str(error).split())[:300]}") from error
        self._function: Any = context.modules.module.product
        arrays = self._inputs.arrays[:2]
        self._arguments = [
            runtime.asdevicearray(config.device, np.ascontiguousarray(each)) for each in arrays
        ]

    def verify(self) -> tuple[Verdict, str]:
        """Returns the verdict on one result, all elements of which are compared with float64, and its text.

        Raises TunerError where the call fails.
        """
        try:
            result = np.asarray(self._function(*self._arguments).to_host())
        except (RuntimeError, ValueError) as error:
            raise TunerError(f"IREE's runtime: {' '.join(str(error).split())[:300]}") from error
        return compare(self._inputs, result.reshape(-1, result.shape[-1]))

    @property
    def stopwatch(self) -> timing.Stopwatch:
        """Returns the stopwatch of calls, which follow an untimed one where calls are short."""
        return timing.with_untimed_calls(timing.stopwatch_of(self._repeat))

    def _repeat(self, times: int) -> None:
        for _ in range(times):
            self._function(*self._arguments)
