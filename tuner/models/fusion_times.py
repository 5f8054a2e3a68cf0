"""Times each fusion of a compiled program, alone or next to the same fusion of another program."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.core.dtypes import CPU_DTYPES
from tuner.core.interfaces import Effort
from tuner.core.machine import Machine
from tuner.core.programs import CompiledFusion, ExplainedFusion
from tuner.core.reliability import unreliable
from tuner.core.round_quality import DRIFT_LIMIT
from tuner.core.serialization import seconds_text
from tuner.models.request import ProgramOptions
from tuner.models.watched_times import host_watch, interleaved, reliability_of
from tuner.runtime.cpu.roofline import measure_roofline

if TYPE_CHECKING:
    from tuner.models.run.fused_program import FusedFunction
    from tuner.runtime.cpu.timing_conditions import HostWatch

EFFORT = Effort(budget_s=0.03, min_samples=10, max_samples=60)  # of each fusion, which is timed twice
THREADS = 1  # of the roofline


def timed_fusions(
    function: "FusedFunction", arguments: tuple[Any, ...], machine: Machine, options: ProgramOptions
) -> tuple[ExplainedFusion, ...]:
    """Times each fusion of a program alone; returns the fusions with their times, in the order they run in.

    Each time is compared with the roofline of one thread. ``arguments``: those of a call of the program.
    Pins the calling thread to a processor.
    """
    call = function.prepare(*arguments)
    watch = host_watch()
    rng = np.random.default_rng(options.seed)
    spare_cores = machine.physical_cores - options.threads
    fusions = interleaved_fusions(((function, call),), EFFORT, rng, watch, spare_cores)
    (whole,) = interleaved((functools.partial(function.repeat, call),), EFFORT, rng, watch)
    return with_shares(fusions, machine, whole.median_s)


def interleaved_fusions(
    programs: Sequence[tuple["FusedFunction", Any]],
    effort: Effort,
    rng: np.random.Generator,
    watch: "HostWatch",
    spare_cores: int,
) -> tuple[ExplainedFusion, ...]:
    """Times each fusion of a program twice, interleaved with the same fusion of the untuned program.

    Returns the fusions of the first program; ``time_s`` is a fusion's time, ``before_s`` that of the same
    fusion untuned, None where ``programs`` has one program.

    Args:
        programs: the program, and optionally the same program untuned; each with a call that
            ``FusedFunction.prepare`` made.
        effort: how long to time one fusion of one program.
        rng: source of the order of the calls.
        watch: observes the machine meanwhile.
        spare_cores: number of cores without a timed thread.
    """
    for function, call in programs:
        function.repeat(call, 1)  # a whole call fills the arena, which each fusion alone then reads
    fusions = []
    for index, fusion in enumerate(programs[0][0].code.fusions):
        repeats = tuple(functools.partial(function.repeat_fusion, call, index) for function, call in programs)
        first, *before, again = interleaved((*repeats, repeats[0]), effort, rng, watch)
        before_s = before[0].median_s if before else None
        reliability = reliability_of(first, again, None, spare_cores)
        fusions.append(ExplainedFusion(fusion, first.median_s, before_s=before_s, reliability=reliability))
    return tuple(fusions)


def with_shares(
    fusions: tuple[ExplainedFusion, ...], machine: Machine, call_s: float
) -> tuple[ExplainedFusion, ...]:
    """Returns timed fusions with their share of the summed times, and their share of the roofline.

    Only a fusion with a reliable time gets shares. A fusion that takes longer than ``call_s``, the seconds
    of a whole call, by more than DRIFT_LIMIT becomes unreliable. Where a fusion is unreliable, no fusion has
    a share of the summed times.
    """
    too_long = unreliable(f"it takes longer than a whole call, {seconds_text(call_s)}")
    fusions = tuple(
        replace(fusion, reliability=too_long)
        if not fusion.reliability.unreliable and (fusion.time_s or 0.0) > (1 + DRIFT_LIMIT) * call_s
        else fusion
        for fusion in fusions
    )
    is_whole = all(fusion.reliability.is_reliable for fusion in fusions if fusion.time_s)
    dtypes = {_dtype(fusion.fusion) for fusion in fusions}
    rooflines = {dtype: measure_roofline(dtype, THREADS, machine) for dtype in sorted(dtypes)}
    for fusion in fusions:
        if fusion.time_s:
            dtype = _dtype(fusion.fusion)
            rooflines[dtype] = rooflines[dtype].raised(*_work(fusion.fusion, machine), fusion.time_s)
    whole_s = sum(fusion.time_s or 0.0 for fusion in fusions)
    return tuple(
        replace(
            fusion,
            share=fusion.time_s / whole_s if is_whole else None,
            roofline=rooflines[_dtype(fusion.fusion)].share(*_work(fusion.fusion, machine), fusion.time_s),
        )
        if fusion.time_s and fusion.reliability.is_reliable
        else fusion
        for fusion in fusions
    )


def _work(fusion: CompiledFusion, machine: Machine) -> tuple[int, int, int]:
    """Returns (flop, moved bytes, bytes of the L2 cache) of a fusion, for its roofline.

    Memory bandwidth limits only fusions that move more bytes than the cache has.
    """
    return fusion.flop, fusion.moved_bytes, machine.l2_bytes


def _dtype(fusion: CompiledFusion) -> str:
    if fusion.element in CPU_DTYPES:
        return fusion.element
    return "f32"
