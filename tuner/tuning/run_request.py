"""A user's request for a run, with defaults; both command line and Python API create this value."""

import math
from dataclasses import dataclass
from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem import Problem

NUMBER_MAX = 2**63 - 1  # largest integer of a database
DEFAULT_TRIALS = 100  # when neither trials nor a budget is given
TIMED_SAMPLER = "tpe"  # the default where candidates are timed
WORKERS_LIMIT = 4  # more workers would wait for the measurement worker
LEAST = {"threads": 1, "seed": 0, "trials": 1, "workers": 1}


@dataclass(frozen=True)
class RunRequest:
    """All options of a new run, as a user gives them; ``run_settings`` adds what depends on the machine."""

    problem: Problem
    target: str = "auto"  # "auto", "cpu", "cuda:sm_90", "replay:FILE"
    chip: str = ""  # for a target without ":chip"
    threads: int = 1
    strategies: tuple[
        Path | str, ...
    ] = ()  # names of the space file, or paths of scripts; (): the whole file
    space: Path | str | None = None  # None: the shipped file
    sampler: str | None = None  # None: the default of the target
    seed: int = 0
    trials: int | None = None
    budget_s: float | None = None
    workers: int | None = None  # None: as many as cores, at most WORKERS_LIMIT
    fresh: bool = False  # run again what earlier runs measured
    warm_start: bool = True  # begin with the best candidates of the nearest problems; not when ``fresh``
    warm_files: tuple[Path | str, ...] = ()  # recordings to learn from as well
    baseline: str = ""  # "best", or a library by name, such as "mkl"; "": the default of the target

    def __post_init__(self) -> None:
        """Raises UsageError for a number of a wrong type or outside of its range."""
        for name, low in LEAST.items():
            require_number(name, getattr(self, name), low)
        require_budget(self.budget_s)

    @property
    def trials_limit(self) -> int | None:
        """Returns the limit of trials, DEFAULT_TRIALS (100) without any limit; None: only time is limited."""
        return DEFAULT_TRIALS if self.trials is None and self.budget_s is None else self.trials

    @property
    def strategy_text(self) -> tuple[str, ...]:
        """Returns the names or files of the chosen strategies as text; () for all of the space file."""
        return tuple(str(strategy) for strategy in self.strategies)

    @property
    def warm_paths(self) -> tuple[str, ...]:
        """Returns the absolute paths of the recordings that warm-start points are taken from."""
        return tuple(str(Path(file).absolute()) for file in self.warm_files)

    def workers_on(self, machine: Machine) -> int:
        """Returns the number of compile workers: as given, else one per physical core of ``machine``.

        Without a given number at most WORKERS_LIMIT (4).
        """
        return min(WORKERS_LIMIT, machine.physical_cores) if self.workers is None else self.workers


def require_number(name: str, number: int | None, low: int) -> None:
    """Raises UsageError unless ``number`` is None or an integer from ``low`` to NUMBER_MAX.

    NUMBER_MAX is 2**63 - 1; True and False are no integers here. ``name`` is the option's, for the message.
    """
    if number is not None and type(number) is not int:
        raise UsageError(f"{name}: found {number!r}, allowed an integer of {low} or more")
    if number is not None and number < low:
        raise UsageError(f"{name}: found {number}, allowed {low} or more")
    if number is not None and number > NUMBER_MAX:
        raise UsageError(f"{name}: found {number}, allowed {low} to {NUMBER_MAX}")


def require_budget(budget_s: float | None) -> None:
    """Raises UsageError unless ``budget_s`` is None or a positive, finite number of seconds."""
    if budget_s is None or (isinstance(budget_s, int | float) and 0 < budget_s < math.inf):
        return
    raise UsageError(f"budget: found {budget_s!r}, allowed seconds, more than 0")
