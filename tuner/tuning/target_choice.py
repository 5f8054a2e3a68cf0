"""Resolves a target option such as "auto" or "cuda:sm_90" on this machine: kind, chip, availability."""

from collections.abc import Iterator

from tuner.core.chips import chip_of
from tuner.core.errors import UsageError, unknown_value
from tuner.core.target_name import SIMULATOR, TargetName
from tuner.tuning.composition import Composition
from tuner.tuning.target_kind import TargetStatus

AUTO = "auto"  # the first target that times candidates here


def resolve_target(text: str, composition: Composition, chip: str = "") -> TargetName:
    """Returns the target that ``text`` means on this machine: "auto", "cuda" or "simulator:sm_90".

    "auto" is the first target that times candidates here; "cuda" without a chip gets the chip of this
    machine's GPU. ``chip`` may be given separately. A target that can only compile here is returned as well.
    Raises UsageError for an unknown target, for a target that can neither run nor compile here, for "cuda"
    with a chip of another capability than the GPU here, and where "auto" finds none.
    """
    if text == AUTO:
        return _first_timed(composition, chip)
    target = named_target(text, composition, chip)
    status = composition.status(target)
    if not (status.is_available or status.can_compile):
        raise UsageError(f"target {text}: not available here: {status.reason}")
    return _on_this_gpu(target, status, has_chip=bool(chip) or ":" in text)


def require_runs_here(target: TargetName, composition: Composition, command: str) -> None:
    """Raises UsageError for a target whose candidates this machine compiles but cannot run.

    Its hint is ``command`` ("tuner tune matmul 8x8x8") with the simulator of the same chip as target.
    """
    status = composition.status(target)
    if status.missing:
        line = f"target {target.text}: nothing runs here: {status.missing}"
        verify = "to verify without a GPU, and carry the result to one by tuner bundle export: "
        raise UsageError(line, f"{verify}{command} --target {TargetName(SIMULATOR, target.detail).text}")


def named_target(text: str, composition: Composition, chip: str = "") -> TargetName:
    """Returns the target of ``text``: ``kind``, ``kind:chip``, ``cpu:processor`` or ``replay:recording``.

    ``chip``: given separately, "" if not; a kind of GPU without a chip gets its default chip. Raises
    UsageError for an unknown kind, chip or processor, for two different chips, and for a chip of a kind that
    has none.
    Does not check whether the target works here.
    """
    name, colon, detail = text.partition(":")
    if colon and chip and chip != detail:
        raise UsageError(f"chip {chip!r} cannot be combined with target {text!r}", "name the chip once")
    names = (*composition.kinds, composition.recordings.status.name)
    if name not in names:
        raise unknown_value("target", text, (AUTO, *names))
    kind = composition.kinds.get(name)
    if kind is None and not chip:
        return TargetName(name, detail)  # of a recording
    if kind is not None and colon and kind.details and not chip:
        if detail not in kind.details:
            raise unknown_value(name, detail, kind.details)
        return TargetName(name, detail)
    if kind is not None and kind.default_chip:
        return TargetName(name, chip_of(detail if colon else chip or kind.default_chip).name)
    if chip or colon:
        allowed = ", ".join(each.name for each in composition.kinds.values() if each.default_chip)
        raise UsageError(
            f"chip {detail or chip!r} cannot be combined with target {name}, only with {allowed}"
        )
    return TargetName(name)


def timed_here(composition: Composition, chip: str = "") -> Iterator[TargetName]:
    """Yields the targets that time candidates on this machine, a GPU before the CPU.

    ``chip``: the chip of the GPU, or "". Raises UsageError, when it is reached, for a target without this
    chip.
    """
    for status in sorted(composition.targets(), key=lambda status: not status.chip):
        if status.is_available and status.is_timed:
            yield _on_this_gpu(named_target(status.name, composition, chip), status, has_chip=bool(chip))


def _first_timed(composition: Composition, chip: str) -> TargetName:
    for target in timed_here(composition, chip):
        return target
    names: dict[str, list[str]] = {}
    for status in composition.targets():
        names.setdefault(status.reason, []).append(status.name)
    reasons = "; ".join(f"{', '.join(each)}: {reason}" for reason, each in names.items())
    raise UsageError(f"target: found none that works here: {reasons}")


def _on_this_gpu(target: TargetName, status: TargetStatus, *, has_chip: bool) -> TargetName:
    """Returns the target with the chip of this machine's GPU, unless a chip was named.

    Raises UsageError for a named chip that is not this machine's.
    """
    if not status.chip:
        return target
    if not has_chip:
        return TargetName(target.kind, status.chip)
    if chip_of(target.detail).capability != chip_of(status.chip).capability:
        hint = f"--target {target.kind}:{status.chip}, or simulator:{target.detail}"
        raise UsageError(f"target {target.text}: the GPU here is {status.chip}", hint)
    return target
