"""The registry of target kinds, those of extensions among them, and the real parts of a run."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, final

from tuner.core.errors import OpPlace
from tuner.runtime import extensions
from tuner.runtime.cpu.host import load_average, present_load, usable_processors
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.backends import Backends
from tuner.targets.children import apply_script, find_failing_op
from tuner.targets.cpu import target
from tuner.targets.cpu.target import host_machine
from tuner.targets.gpu import cuda
from tuner.targets.interface import TargetBackend
from tuner.targets.replay import RECORDINGS

BUILT_IN: Final[Mapping[str, TargetBackend]] = {
    "cpu": target.KIND,
    "cuda": cuda.KIND,
}


@final
class RegisteredTargets(Mapping[str, TargetBackend]):
    """The target kinds by name: those of the base, then those of extensions, imported when they are used."""

    def __getitem__(self, name: str) -> TargetBackend:
        if name in BUILT_IN:
            return BUILT_IN[name]
        kind: TargetBackend = self._added()[name].load()
        return kind

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from self._added()

    def __len__(self) -> int:
        return len(BUILT_IN) + len(self._added())

    def _added(self) -> Mapping[str, extensions.Extension]:
        return extensions.extensions("targets", BUILT_IN)


KINDS: Final[Mapping[str, TargetBackend]] = RegisteredTargets()
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
