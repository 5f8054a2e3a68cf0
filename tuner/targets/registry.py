"""The registry of target kinds, and the real parts of a run; a new kind is a line in ``KINDS``."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from tuner.core.errors import OpPlace
from tuner.runtime.cpu.host import load_average, present_load, usable_processors
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.backends import Backends
from tuner.targets.children import apply_script, find_failing_op
from tuner.targets.cpu import target
from tuner.targets.cpu.target import host_machine
from tuner.targets.gpu import cuda, simulator_target
from tuner.targets.interface import TargetBackend
from tuner.targets.replay import RECORDINGS

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
        kinds=KINDS,
        recordings=RECORDINGS,
        machine=host_machine,
        processors=usable_processors,
        present_load=present_load,
        load_average=load_average,
        apply=_apply,
        failing_op=_failing_op,
    )


def _apply(script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()) -> str:
    call = partial(apply_script, script, payload, allows_effects, trailing)
    return call_in_child("apply", call, APPLY_TIMEOUT_S)


def _failing_op(script: str, payload: str) -> OpPlace | None:
    return call_in_child("apply", partial(find_failing_op, script, payload), APPLY_TIMEOUT_S)
