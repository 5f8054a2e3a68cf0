"""The registry of targets, those of extensions among them, and the real parts of a run."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Final, final

from tuner.core.candidate import TargetName
from tuner.core.errors import OpPlace
from tuner.core.machine import Machine, PresentLoad, Processors
from tuner.runtime import extensions
from tuner.runtime.cpu import host
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.backends import Backends
from tuner.targets.children import apply_script, find_failing_op
from tuner.targets.cpu.target import host_machine
from tuner.targets.replay import replay_of
from tuner.targets.target import Target

BUILT_IN: Final[Mapping[str, str]] = {  # name -> "module:object", imported at first use
    "cpu": "tuner.targets.cpu.target:THIS_CPU",
    "cuda": "tuner.gpu.target.target:THIS_GPU",
}
APPLY_TIMEOUT_S = 60.0


@final
class RegisteredTargets(Mapping[str, Target]):
    """The targets by name: built-in ones, then those of extensions; each is imported at first use."""

    def __getitem__(self, name: str) -> Target:
        target: Target
        if name in BUILT_IN:
            target = resolve_name(BUILT_IN[name])
        else:
            target = self._added()[name].load()
        return target

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from self._added()

    def __len__(self) -> int:
        return len(BUILT_IN) + len(self._added())

    def _added(self) -> Mapping[str, extensions.Extension]:
        return extensions.extensions("targets", BUILT_IN)


TARGETS: Final[Mapping[str, Target]] = RegisteredTargets()


@final
class RealBackends(Backends):
    """The backends of real runs: registered targets, this machine's processors and their load."""

    targets = TARGETS

    def replay_of(self, file: Path) -> tuple[Target, TargetName]:
        return replay_of(file)

    def machine(self) -> Machine:
        return host_machine()

    def processors(self) -> Processors:
        return host.usable_processors()

    def present_load(self) -> PresentLoad:
        return host.present_load()

    def load_average(self) -> float | None:
        return host.load_average()

    def apply(
        self, script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()
    ) -> str:
        call = partial(apply_script, script, payload, allows_effects, trailing)
        return call_in_child("apply", call, APPLY_TIMEOUT_S)

    def failing_op(self, script: str, payload: str) -> OpPlace | None:
        return call_in_child("apply", partial(find_failing_op, script, payload), APPLY_TIMEOUT_S)


def real_backends() -> Backends:
    """Returns the backends of real runs; tests replace this function."""
    return RealBackends()
