"""The real parts of a run. Heavy modules are imported by the parts that need them."""

from functools import partial

from tuner.core.processors import PresentLoad, Processors
from tuner.mlir.op_place import OpPlace
from tuner.tuning.composition import Composition
from tuner.tuning.parts.child_call import call_in_child
from tuner.tuning.parts.child_functions import apply_script, find_failing_op
from tuner.tuning.parts.cpu import host_machine
from tuner.tuning.parts.kinds import KINDS
from tuner.tuning.parts.recording import RECORDINGS

APPLY_TIMEOUT_S = 60.0


def real_composition() -> Composition:
    """Returns the parts of a run with the real compilers, machines and clocks; tests replace some of them."""
    return Composition(
        KINDS, RECORDINGS, host_machine, _processors, _present_load, _load_average, _apply, _failing_op
    )


def _processors() -> Processors:
    from tuner.runtime.cpu.usable_processors import usable_processors

    return usable_processors()


def _present_load() -> PresentLoad:
    from tuner.runtime.cpu.usable_processors import present_load

    return present_load()


def _load_average() -> float | None:
    from tuner.runtime.cpu.describe_host import load_average

    return load_average()


def _apply(script: str, payload: str, allows_effects: bool = False) -> str:
    return call_in_child("apply", partial(apply_script, script, payload, allows_effects), APPLY_TIMEOUT_S)


def _failing_op(script: str, payload: str) -> OpPlace | None:
    return call_in_child("apply", partial(find_failing_op, script, payload), APPLY_TIMEOUT_S)
