"""The replaceable parts of a run, and the target that an option such as "auto" or "cuda:sm_90" means."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tuner.core.candidate import CPU, CUDA, SIMULATOR, TargetName
from tuner.core.errors import OpPlace, UsageError, unknown_value
from tuner.core.gpu import chip_of
from tuner.core.machine import Machine
from tuner.core.processors import PresentLoad, Processors
from tuner.core.requests import RunRequest
from tuner.core.runs import RunSettings
from tuner.targets.interface import MeasurementBackend, TargetBackend, TargetStatus

if TYPE_CHECKING:
    from tuner.search.cost_model.untimed import Predict


class Apply(Protocol):
    """Applies a transform script to a payload; returns the new text. Raises TunerError where that fails."""

    def __call__(
        self, script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()
    ) -> str:
        """Passes that write files or start programs run only if ``allows_effects``; texts are MLIR.

        ``trailing``: what the entry's arguments after the first stand for, as mlir-opt's
        ``debug-bind-trailing-args`` has it.
        """


@dataclass(frozen=True)
class Recordings:
    """The functions that replay recorded search spaces in place of a machine: ``--target replay:FILE``."""

    status: TargetStatus  # of the target "replay", which never measures
    settings: Callable[[RunRequest, int], RunSettings]  # (request, workers); raises UsageError
    of_file: Callable[[Path], tuple[MeasurementBackend, TargetName]]  # raises UsageError
    of_run: Callable[[RunSettings], MeasurementBackend]  # of the run's recording; raises UsageError


@dataclass(frozen=True)
class Backends:
    """The replaceable parts of a run: target kinds, recordings, facts of this machine, the interpreter."""

    kinds: Mapping[str, TargetBackend]  # by name
    recordings: Recordings
    machine: Callable[[], Machine]  # this machine
    processors: Callable[[], Processors]  # that this process may use
    present_load: Callable[[], PresentLoad]  # of the usable processors, while nothing is timed
    load_average: Callable[[], float | None]  # of the last minute
    apply: Apply
    failing_op: Callable[[str, str], OpPlace | None]  # (script, payload); raises TunerError

    def kind(self, target: TargetName) -> TargetBackend:
        """Returns a target's kind, of "cpu:znver4" the cross-compiling one. UsageError: unknown, a replay."""
        kind = self.kinds.get(target.kind)
        if kind is None:
            raise UsageError(f"target {target.text!r}: not known here")
        return kind.cross_compiled if kind.cross_compiled is not None and target.detail else kind

    def measurement(self, target: TargetName) -> MeasurementBackend:
        """Returns what compiles, verifies and times for a target; raises UsageError for a replay."""
        return self.kind(target).measurement

    def measurement_of_run(self, settings: RunSettings) -> MeasurementBackend:
        """Returns what measures for a run: its target, or its recording; raises UsageError."""
        if settings.target.has_machine:
            return self.kind(settings.target).measurement_with(settings.baseline_library)
        return self.recordings.of_run(settings)

    def status(self, target: TargetName) -> TargetStatus:
        """Returns whether a target compiles and runs here, or why not. Raises UsageError if unknown."""
        return self.kind(target).status() if target.has_machine else self.recordings.status

    @property
    def predict(self) -> "Predict":
        """Returns a function that predicts the cycles of a GPU program, None where no target predicts any."""
        predicting = (each.predict for each in self.kinds.values() if each.predict is not None)
        return next(predicting, lambda _problem, _program: None)

    def targets(self) -> tuple[TargetStatus, ...]:
        """Returns the status on this machine of each target kind, then that of replays of recordings."""
        return (*(kind.status() for kind in self.kinds.values()), self.recordings.status)


AUTO = "auto"  # the first target that times candidates here


def resolve_target(text: str, backends: Backends, chip: str = "") -> TargetName:
    """Returns the target that "auto", "cuda" or "simulator:sm_90" means here; ``chip``: of --chip, or "".

    "auto" is the first target that times candidates; "cuda" is this GPU. A target may only compile here.
    Raises UsageError for one that does not even compile, and for a chip of another capability than the GPU's.
    """
    if text == AUTO:
        for target in timed_here(backends, chip):
            return target
        names: dict[str, list[str]] = {}
        for status in backends.targets():
            names.setdefault(status.reason, []).append(status.name)
        reasons = "; ".join(f"{', '.join(each)}: {reason}" for reason, each in names.items())
        raise UsageError(f"target: found none that works here: {reasons}")
    target = named_target(text, backends, chip)
    status = backends.status(target)
    if not (status.is_available or status.can_compile):
        raise UsageError(f"target {text}: not available here: {status.reason}")
    return _on_this_gpu(target, status, has_chip=bool(chip) or ":" in text)


def require_runs_here(target: TargetName, backends: Backends, command: str) -> None:
    """Raises UsageError for a target that cannot run here; the hint: ``command`` with the simulator."""
    status = backends.status(target)
    if status.missing:
        line = f"target {target.text}: nothing runs here: {status.missing}"
        verify = "to verify without a GPU, and carry the result to one by tuner bundle export: "
        raise UsageError(line, f"{verify}{command} --target {TargetName(SIMULATOR, target.detail).text}")


def named_target(text: str, backends: Backends, chip: str = "") -> TargetName:
    """Returns the target of ``text``: ``kind``, ``kind:chip``, ``cpu:processor`` or ``replay:recording``.

    ``chip``: of --chip, or "". Raises UsageError for unknown or conflicting names, not for missing machines.
    """
    name, colon, detail = text.partition(":")
    if colon and chip and chip != detail:
        raise UsageError(f"chip {chip!r} cannot be combined with target {text!r}", "name the chip once")
    replay = backends.recordings.status.name
    kind = None if name == replay else backends.kinds.get(name)
    if kind is None and name != replay:
        names = (*backends.kinds, replay)
        error, meant = unknown_value("target", text, (AUTO, *names)), _meant(text, backends)
        raise UsageError(error.message, f"did you mean {meant}?" if meant else error.hint)
    if kind is None and not chip:
        return TargetName(name, detail)  # of a recording
    if kind is not None and colon and kind.details and not chip:
        if detail not in kind.details:
            raise unknown_value(name, detail, kind.details)
        return TargetName(name, detail)
    if kind is not None and kind.default_chip:
        return TargetName(name, chip_of(detail if colon else chip or kind.default_chip).name)
    if chip or colon:
        allowed = ", ".join(each.name for each in backends.kinds.values() if each.default_chip)
        raise UsageError(
            f"chip {detail or chip!r} cannot be combined with target {name}, only with {allowed}"
        )
    return TargetName(name)


# What other compilers and packages call a target -> its name here
OTHER_NAMES = {
    **dict.fromkeys(("gpu", "nvidia", "nvptx", "nvvm", "ptx"), CUDA),
    **dict.fromkeys(("host", "native", "llvm", "llvm-cpu", "x86", "x86_64", "x86-64"), CPU),
    "gpusim": SIMULATOR,
}


def _meant(text: str, backends: Backends) -> str:
    """Returns the target that ``text`` may stand for: "cuda" for "gpu", "cuda:sm_90" for "sm_90"; or ""."""
    name, colon, detail = text.lower().partition(":")
    if name in OTHER_NAMES:
        return f"{OTHER_NAMES[name]}{colon}{detail}"
    if name.startswith("sm_"):
        return f"{CUDA}:{name}"
    of_detail = (each.name for each in backends.kinds.values() if name in each.details)
    return next((f"{target}:{name}" for target in of_detail), "")


def timed_here(backends: Backends, chip: str = "") -> Iterator[TargetName]:
    """Yields the targets that time candidates on this machine, a GPU (``chip`` or "") before the CPU."""
    for status in sorted(backends.targets(), key=lambda status: not status.chip):
        if status.is_available and status.is_timed:
            yield _on_this_gpu(named_target(status.name, backends, chip), status, has_chip=bool(chip))


def _on_this_gpu(target: TargetName, status: TargetStatus, *, has_chip: bool) -> TargetName:
    if not status.chip:
        return target
    if not has_chip:
        return TargetName(target.kind, status.chip)
    if chip_of(target.detail).capability != chip_of(status.chip).capability:
        hint = f"--target {target.kind}:{status.chip}, or simulator:{target.detail}"
        raise UsageError(f"target {target.text}: the GPU here is {status.chip}", hint)
    return target
