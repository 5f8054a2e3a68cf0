"""The replaceable parts of a run (targets, this machine, scripts), and the target that an option means.

``Backends`` is the port; ``resolve_target`` reads options such as "auto" or "cuda:sm_90".
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.candidate import AUTO, CPU, CUDA, REPLAY, SIMULATOR, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import OpPlace, UsageError, unknown_value
from tuner.core.machine import Machine, PresentLoad, Processors
from tuner.core.problem import Problem
from tuner.core.runs import RunSettings
from tuner.targets.target import Target, TargetStatus

if TYPE_CHECKING:
    from tuner.core.compiled_code import PredictedCycles


REPLAY_STATUS = TargetStatus(
    REPLAY, False, f"with a file only, a recorded space: --target {REPLAY}:FILE"
)  # of what never measures
# What other compilers and packages call a target -> its name here
OTHER_NAMES = {
    **dict.fromkeys(("gpu", "nvidia", "nvptx", "nvvm", "ptx"), CUDA),
    **dict.fromkeys(("host", "native", "llvm", "llvm-cpu", "x86", "x86_64", "x86-64"), CPU),
    "gpusim": SIMULATOR,
}


class Backends(ABC):
    """The parts of a run that depend on where it runs: targets, this machine, transforms of scripts.

    Tests replace them by fakes.
    """

    targets: Mapping[str, Target]  # by name

    @abstractmethod
    def replay_of(self, file: Path) -> tuple[Target, TargetName]:
        """Returns a target that replays the recording ``file``, and its name ``replay:NAME``.

        Raises UsageError for a file that is missing or damaged.
        """

    @abstractmethod
    def machine(self) -> Machine:
        """Returns the description of this machine."""

    @abstractmethod
    def processors(self) -> Processors:
        """Returns the processors that this process may use."""

    @abstractmethod
    def present_load(self) -> PresentLoad:
        """Returns the load of the usable processors, measured now; call it while nothing is timed."""

    @abstractmethod
    def load_average(self) -> float | None:
        """Returns the system's load average of the last minute; None where the system does not report it."""

    @abstractmethod
    def apply(
        self, script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()
    ) -> str:
        """Applies a transform script to a payload, both MLIR text; returns the new payload.

        ``allows_effects``: run passes that write files or start programs. ``trailing``: values of the script
        entry's arguments after the first, as in mlir-opt's ``debug-bind-trailing-args``. Raises TunerError if
        the script fails.
        """

    @abstractmethod
    def failing_op(self, script: str, payload: str) -> OpPlace | None:
        """Applies a script to a payload; returns the top-level transform op that fails.

        None if none fails, and for a script that cannot be searched: one that does not parse or whose entry
        has further arguments. Raises TunerError for a payload that does not parse, or if the child crashes.
        """

    def target(self, name: TargetName) -> Target:
        """Returns the target with this name.

        For "cpu:znver4": a target that times code for that processor if this one can run all of it, else one
        that verifies it at most. Raises UsageError for an unknown name, and for a replay, whose target
        depends on a file.
        """
        target = self.targets.get(name.kind)
        if target is None:
            raise UsageError(f"target {name.text!r}: not known here")
        return target.of_detail(name.detail)

    def target_of_run(self, settings: RunSettings) -> Target:
        """Returns the target that measures a run's candidates: its own, or a replay of its recording.

        Raises UsageError for an unknown target, or a recording that is missing or damaged.
        """
        if settings.target.has_machine:
            return self.target(settings.target).with_baseline(settings.baseline_library)
        return self.replay_of(Path(settings.recording))[0]

    def status(self, name: TargetName) -> TargetStatus:
        """Returns whether a target compiles and runs here, or why not.

        Raises UsageError for an unknown name.
        """
        if name.has_machine:
            return self.target(name).status()
        return REPLAY_STATUS

    def statuses(self) -> tuple[TargetStatus, ...]:
        """Returns the status of each target on this machine; the last one is that of replays."""
        return (*(target.status() for target in self.targets.values()), REPLAY_STATUS)

    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        """Returns the predicted cycles of a GPU program; None if no target of its chip has a model for it."""
        for target in self.targets.values():
            if program.chip in target.chips:
                cycles = target.predicted(problem, program)
                if cycles is not None:
                    return cycles
        return None


def resolve_target(text: str, backends: Backends, chip: str = "") -> TargetName:
    """Returns the target that the text of an option, such as "auto" or "cuda", means on this machine.

    "auto": the first target that times candidates here; "cuda": this machine's GPU. ``chip``: text of --chip,
    "" if not given. The target may be one that only compiles here. Raises UsageError if it does not even
    compile, and for a chip whose code does not run on the GPU here.
    """
    if text == AUTO:
        for target in timed_here(backends, chip):
            return target
        names: dict[str, list[str]] = {}
        for status in backends.statuses():
            names.setdefault(status.reason, []).append(status.name)
        reasons = "; ".join(f"{', '.join(targets)}: {reason}" for reason, targets in names.items())
        raise UsageError(f"target: found none that works here: {reasons}")
    target = named_target(text, backends, chip)
    status = backends.status(target)
    if not (status.is_available or status.can_compile):
        raise UsageError(f"target {text}: not available here: {status.reason}")
    return _on_this_gpu(target, status, backends, has_chip=bool(chip) or ":" in text)


def require_runs_here(target: TargetName, backends: Backends, command: str) -> None:
    """Raises UsageError if a target's code cannot run here.

    If the simulator has the target's chip, the hint is ``command`` with the simulator as target.
    """
    status = backends.status(target)
    if status.missing:
        line = f"target {target.text}: nothing runs here: {status.missing}"
        hint = ""
        if _has_simulator(target, backends):
            hint = "to verify without a GPU, and carry the result to one by tuner bundle export: "
            hint += f"{command} --target {TargetName(SIMULATOR, target.detail).text}"
        raise UsageError(line, hint)


def named_target(text: str, backends: Backends, chip: str = "") -> TargetName:
    """Returns the target of ``text``: ``target``, ``target:chip``, ``cpu:processor`` or ``replay:recording``.

    ``chip``: text of --chip, "" if not given. Raises UsageError for an unknown or contradictory name; does
    not ask whether the target can compile or run here.
    """
    name, colon, detail = text.partition(":")
    if colon and chip and chip != detail:
        raise UsageError(f"chip {chip!r} cannot be combined with target {text!r}", "name the chip once")
    replay = REPLAY_STATUS.name
    target = None if name == replay else backends.targets.get(name)
    if target is None and name != replay:
        names = (*backends.targets, replay)
        error = unknown_value("target", text, (AUTO, *names))
        meant = _meant(text, backends)
        raise UsageError(error.message, f"did you mean {meant}?" if meant else error.hint)
    if target is None and not chip:
        return TargetName(name, detail)  # of a recording
    if target is not None and colon and target.details and not chip:
        if detail not in target.details:
            raise unknown_value(name, detail, target.details)
        return TargetName(name, detail)
    if target is not None and target.chips:
        named = detail if colon else chip or target.default_chip
        if named not in target.chips:
            raise unknown_value("chip", named, target.chips)
        return TargetName(name, named)
    if chip or colon:
        allowed = ", ".join(known.name for known in backends.targets.values() if known.chips)
        raise UsageError(
            f"chip {detail or chip!r} cannot be combined with target {name}, only with {allowed}"
        )
    return TargetName(name)


def _meant(text: str, backends: Backends) -> str:
    """Returns the target that a user's ``text`` stands for: "cuda" for "gpu", "cuda:sm_90" for "sm_90".

    "" for a text that stands for no other name.
    """
    name, colon, detail = text.lower().partition(":")
    if name in OTHER_NAMES:
        return f"{OTHER_NAMES[name]}{colon}{detail}"
    targets = backends.targets.values()
    of_detail = (target.name for target in targets if name in (*target.chips, *target.details))
    return next((f"{target}:{name}" for target in of_detail), "")


def timed_here(backends: Backends, chip: str = "") -> Iterator[TargetName]:
    """Yields the targets that can time candidates on this machine, GPUs before the CPU.

    ``chip``: text of --chip, "" if not given. If some targets have this chip, GPUs of other targets are left
    out. Raises UsageError when it comes to a target that cannot have the chip.
    """
    owners = {target.name for target in backends.targets.values() if chip in target.chips}
    for status in sorted(backends.statuses(), key=lambda status: not status.chip):
        is_others = bool(owners) and bool(status.chip) and status.name not in owners
        if status.is_available and status.is_timed and not is_others:
            target = named_target(status.name, backends, chip)
            yield _on_this_gpu(target, status, backends, has_chip=bool(chip))


def _has_simulator(target: TargetName, backends: Backends) -> bool:
    simulator = backends.targets.get(SIMULATOR)
    return simulator is not None and target.detail in simulator.chips


def _on_this_gpu(
    target: TargetName, status: TargetStatus, backends: Backends, *, has_chip: bool
) -> TargetName:
    if not status.chip:
        return target
    if not has_chip:
        return TargetName(target.kind, status.chip)
    if target.detail not in (status.chip, *status.chips):
        hint = f"--target {target.kind}:{status.chip}"
        if _has_simulator(target, backends):
            hint += f", or {SIMULATOR}:{target.detail}"
        raise UsageError(f"target {target.text}: the GPU here is {status.chip}", hint)
    return target
