"""Which steps of a transform script leave the payload as it is: a schedule is shorter without them.

A step is an op of a sequence that changes the payload where it works: tiling, vectorization, a cleanup. The
payload is printed before each step and after the last one; equal texts show that the step changed nothing:

    %tiled, %loop = transform.structured.tile_using_for %matmul tile_sizes [8] : ...
    transform.apply_licm to %loop : !transform.any_op     // idle: there was nothing to hoist
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tuner.core.errors import SCRIPT, OpPlace, named_places
from tuner.mlir import miscompiled, script_steps, transform
from tuner.mlir.bindings import ir

# Begin names of ops that find, compute or print something, and of those whose work is their regions'.
READING = (
    *("transform.get_", "transform.match.", "transform.param.", "transform.tune.", "transform.debug."),
    *("transform.structured.match", "transform.merge_handles", "transform.split_handle", "transform.cast"),
    *("transform.select", "transform.num_associations", "transform.collect_matching", "transform.print"),
    *("transform.verify", "transform.include", "transform.foreach", "transform.alternatives"),
    *("transform.sequence", "transform.named_sequence", "transform.smt.", "transform.replicate"),
)


@dataclass(frozen=True)
class AppliedScript:
    """A payload after a script, and the places of the script's ops that changed nothing."""

    payload: str
    idle: tuple[OpPlace, ...]  # in the order of the script


def applied_script(script: str, payload: str) -> AppliedScript:
    """Applies a script to a payload, both MLIR text; returns the new payload and the idle ops of the script.

    An op that should change the payload is idle if it changed nothing, in no run of several, as in
    ``transform.foreach``. Raises CandidateError for text that does not parse, and for a script that fails.
    """
    with transform.new_context(), ir.Location.unknown():
        module = transform.without_schedules(transform.parse(payload, "payload"))
        miscompiled.avoid_miscompilations_by_scripts(module)
        bound = transform.parse(script, SCRIPT)
        watch = _Watch(module)
        with script_steps.following_steps(watch.begin):
            transform.apply_script(module, bound)
        watch.end()
        idle = sorted(watch.idle, key=lambda place: (place.line, place.column))
        return AppliedScript(str(module), tuple(idle))


class _Watch:
    """Compares the payload before and after each step."""

    def __init__(self, payload: ir.Module) -> None:
        self._payload = payload
        self._before = ""
        self._step = ""
        self._has_changed: dict[str, bool] = {}  # by step

    @property
    def idle(self) -> Iterator[OpPlace]:
        """Yields the places of the steps that never changed the payload."""
        for step, has_changed in self._has_changed.items():
            if not has_changed:
                yield from named_places(step)

    def begin(self, step: str) -> None:
        self.end()
        self._step = step

    def end(self) -> None:
        """Compares the payload after the current step with that before it."""
        after = self._payload.operation.get_asm(assume_verified=True)
        if self._step and not self._step.startswith(READING):
            is_changed = after != self._before
            self._has_changed[self._step] = self._has_changed.get(self._step, False) or is_changed
        self._before = after
        self._step = ""
