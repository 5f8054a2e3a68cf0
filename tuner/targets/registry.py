"""The registry of real targets, and the real parts of a run; heavy modules are imported when used."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from tuner.core.errors import OpPlace
from tuner.core.processors import PresentLoad, Processors
from tuner.runtime.cpu.host import load_average, present_load, usable_processors
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.backends import Backends
from tuner.targets.children import apply_script, find_failing_op
from tuner.targets.cpu import target
from tuner.targets.cpu.target import host_machine
from tuner.targets.gpu import cuda, simulator_target
from tuner.targets.interface import TargetBackend
from tuner.targets.replay import RECORDINGS

# ------------------------------------------------------------------------------
# The registry of target kinds. A new kind is a file in this folder and a line here.


KINDS: Mapping[str, TargetBackend] = MappingProxyType(
    {
        "cpu": target.KIND,
        "cuda": cuda.KIND,
        "simulator": simulator_target.KIND,
    }
)


APPLY_TIMEOUT_S = 60.0


def real_backends() -> Backends:
    """Returns the parts of a run with the real compilers, machines and clocks; tests replace some of them."""
    return Backends(
        KINDS, RECORDINGS, host_machine, _processors, _present_load, _load_average, _apply, _failing_op
    )


def _processors() -> Processors:
    return usable_processors()


def _present_load() -> PresentLoad:
    return present_load()


def _load_average() -> float | None:
    return load_average()


def _apply(script: str, payload: str, allows_effects: bool = False) -> str:
    return call_in_child("apply", partial(apply_script, script, payload, allows_effects), APPLY_TIMEOUT_S)


def _failing_op(script: str, payload: str) -> OpPlace | None:
    return call_in_child("apply", partial(find_failing_op, script, payload), APPLY_TIMEOUT_S)
