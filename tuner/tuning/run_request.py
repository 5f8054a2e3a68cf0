"""What a user asks of a run, with its defaults: the command line and the Python API build the same value."""

import math
from dataclasses import dataclass
from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem import Problem

NUMBER_MAX = 2**63 - 1  # of an integer of a database
DEFAULT_TRIALS = 100  # when neither a number nor a time is given
TIMED_SAMPLER = "tpe"  # where none is named and there are times to learn from
WORKERS_LIMIT = 4  # more than this wait for the one that times
LEAST = {"threads": 1, "seed": 0, "trials": 1, "workers": 1}
WORDS = ("target", "chip", "sampler")
LISTS = {"strategies": "strategy", "warm_files": "warm_start"}  # field -> as users say it


@dataclass(frozen=True)
class RunRequest:
    """Everything that may be said about a new run; ``run_settings`` fills in what the machine decides."""

    problem: Problem
    target: str = "auto"  # a word: "cpu", "cuda:sm_90", "replay:FILE"
    chip: str = ""  # beside a target without one
    threads: int = 1
    strategies: tuple[
        Path | str, ...
    ] = ()  # names of the space file, or paths of scripts; (): the whole file
    space: Path | str | None = None  # None: the file that is shipped
    sampler: str | None = None  # None: one that suits
    seed: int = 0
    trials: int | None = None
    budget_s: float | None = None
    workers: int | None = None  # None: the cores, at most WORKERS_LIMIT
    fresh: bool = False  # re-run what is known
    warm_start: bool = True  # begin with what was best for the nearest problems; not when ``fresh``
    warm_files: tuple[Path | str, ...] = ()  # recordings to learn from as well

    def __post_init__(self) -> None:
        """Raises UsageError for a number, a time, a word or a list that is none."""
        if not isinstance(self.problem, Problem):
            raise UsageError(f"problem: found {self.problem!r}, allowed such as tuner.Matmul(512, 512, 512)")
        for name, low in LEAST.items():
            require_number(name, getattr(self, name), low)
        require_budget(self.budget_s)
        for name in WORDS:
            _require_choice(name, getattr(self, name))
        for name, word in LISTS.items():
            _require_list(word, getattr(self, name))

    @property
    def trials_limit(self) -> int | None:
        """Returns the budget of trials; None where only time limits the run."""
        return DEFAULT_TRIALS if self.trials is None and self.budget_s is None else self.trials

    @property
    def strategy_text(self) -> tuple[str, ...]:
        """Returns the strategies as the command line spells them."""
        return tuple(str(strategy) for strategy in self.strategies)

    @property
    def warm_paths(self) -> tuple[str, ...]:
        """Returns the recordings to learn from, as a run stores them."""
        return tuple(str(Path(file).absolute()) for file in self.warm_files)

    def workers_on(self, machine: Machine) -> int:
        """Returns how many candidates are compiled at once."""
        return min(WORKERS_LIMIT, machine.physical_cores) if self.workers is None else self.workers


def require_number(name: str, number: int | None, low: int) -> None:
    """Raises UsageError for what is no integer, is too small, or is kept by no database."""
    if number is not None and type(number) is not int:
        raise UsageError(f"{name}: found {number!r}, allowed an integer of {low} or more")
    if number is not None and number < low:
        raise UsageError(f"{name}: found {number}, allowed {low} or more")
    if number is not None and number > NUMBER_MAX:
        raise UsageError(f"{name}: found {number}, allowed {low} to {NUMBER_MAX}")


def _require_choice(name: str, word: object) -> None:
    """Raises UsageError for what is no text; only a sampler may be left to the tuner."""
    if not isinstance(word, str) and not (word is None and name == "sampler"):
        raise UsageError(f"{name}: found {word!r}, allowed a word")


def _require_list(name: str, found: object) -> None:
    """Raises UsageError for one word in place of several, and for what is no word."""
    if isinstance(found, str | Path):
        raise UsageError(f"{name}: found {str(found)!r}, allowed a tuple of such")
    if not isinstance(found, tuple | list) or not all(isinstance(each, str | Path) for each in found):
        raise UsageError(f"{name}: found {found!r}, allowed a tuple of names or paths")


def require_budget(budget_s: float | None) -> None:
    """Raises UsageError for a time that never ends, or is over before it begins."""
    if budget_s is None or (isinstance(budget_s, int | float) and 0 < budget_s < math.inf):
        return
    raise UsageError(f"budget: found {budget_s!r}, allowed seconds, more than 0")
