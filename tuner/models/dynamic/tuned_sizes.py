"""The static programs that are tuned for a program of a dynamic size, and how they share a budget."""

from dataclasses import dataclass, replace

from tuner.core.dynamic_sizes import Sizes
from tuner.mlir.ir.resources import joined_payload, split_payload
from tuner.models.dynamic.specialization import StaticProgram, required, specialized
from tuner.models.payload_errors import named_in_errors
from tuner.models.request import ProgramRequest
from tuner.models.run.sized_types import MASK
from tuner.models.service import in_child

TIMEOUT_S = 60.0  # of making a static program
LEAST_BUDGET_S = 1.0  # of tuning one


def request_at(request: ProgramRequest, size: Sizes, least: Sizes, name: str) -> ProgramRequest:
    """Returns the request for the static program of a payload at n = ``size``, as a call of that n runs it.

    A child process makes the program, for calls from n = ``least`` on. ``name``: the payload's, for error
    messages. Raises UsageError for a payload without such a program, with operation and line.
    """
    payload = split_payload(request.text)
    with named_in_errors(name, request.text):
        arguments = (payload.text, request.entry, size, least)
        program = required(in_child(specialized, *arguments, timeout_s=TIMEOUT_S))
    options = (*request.arguments, *_size_options(program))
    text = joined_payload(program.text, payload.resources)
    return replace(request, text=text, written="", entry=None, arguments=options)


def _size_options(program: StaticProgram) -> list[str]:
    """Returns the values of ``--arg`` by which the added arguments say that a call is of the whole size."""
    first = len(program.signature.arguments)
    options = []
    for number, added in enumerate(program.added, first):
        content = added.size.at(program.size)
        if added.use == MASK:
            content = 1
        options.append(f"{number}={content}")
    return options


@dataclass(frozen=True)
class SharedLimits:
    """The limits of a tuning: number of candidates, and seconds; None: no such limit."""

    trials: int | None
    budget_s: float | None

    @property
    def is_over(self) -> bool:
        """Returns whether the budget is too short to tune a program; False without a budget."""
        return self.budget_s is not None and self.budget_s < LEAST_BUDGET_S

    @property
    def budget(self) -> str | None:
        """Returns the budget as the command line takes it: "12.500s"; None without a budget."""
        if self.budget_s is None:
            return None
        return f"{self.budget_s:.3f}s"

    def share(self, left: int, spent_trials: int, began_s: float, now_s: float) -> "SharedLimits":
        """Returns the limits of the next of ``left`` programs, which share what is left of these equally.

        ``spent_trials``: candidates of the programs before. ``began_s``, ``now_s``: when tuning began, and
        now, in seconds on one clock.
        """
        trials = None
        if self.trials is not None:
            trials = max(1, (self.trials - spent_trials) // left)
        budget_s = None
        if self.budget_s is not None:
            budget_s = max(0.0, self.budget_s - (now_s - began_s)) / left
        return SharedLimits(trials, budget_s)
