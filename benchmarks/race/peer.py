"""What a tuner or a library is for the race: how it is installed and run, and which kernel it gives."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.race.timed_command import EndedCommand, LogWatch, run_for
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem

NO_RESULT = "no result yet"
OUTPUTS = {"f32": "f32", "bf16": "f32", "i8": "i32"}  # type of C for a type of A and B


@dataclass(frozen=True)
class RaceMatmul:
    """One matmul of the race."""

    m: int
    n: int
    k: int
    dtype: str  # of A and B: f32, bf16, i8

    @property
    def shape(self) -> str:
        """Returns "512x512x512"."""
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def sizes(self) -> tuple[str, str, str]:
        """Returns m, n and k as words of a command."""
        return str(self.m), str(self.n), str(self.k)

    @property
    def output(self) -> str:
        """Returns the type of C."""
        return OUTPUTS[self.dtype]

    @property
    def problem(self) -> Problem:
        """Returns the matmul as tuner's problem."""
        return Matmul(self.m, self.n, self.k, dtype=self.dtype)

    @property
    def flop(self) -> int:
        """Returns the operations of the matmul."""
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True)
class PeerPlace:
    """Where a peer works: its interpreter, a folder of its own, the core of all its processes."""

    python: Path
    folder: Path
    core: int
    processor: str = ""  # whose instructions are compiled, by LLVM's name, "haswell"; "": the one here

    def program(self, name: str) -> str:
        """Returns the path of a program that the environment has."""
        return str(self.python.with_name(name))


@dataclass(frozen=True)
class LoggedTrial:
    """A result in a tuner's own log: when it was there, and the tuner's own time of it."""

    elapsed_s: float  # since the start of the tuner's process
    own_s: float | None  # seconds per call; None: the trial failed, or was stopped early
    is_failed: bool = False
    chosen: tuple[str, ...] = ()  # its knobs, where the tuner must be told them to give the kernel back


@dataclass(frozen=True)
class PeerKernel:
    """A compiled kernel as a file, and how it is called: ``kind`` is a key of ``kernel_server.KINDS``."""

    kind: str
    library: str
    symbol: str
    environment: tuple[tuple[str, str], ...] = ()  # variables for the process that loads it


@dataclass(frozen=True)
class PeerResult:
    """What a peer had after a budget: its kernel, or the reason that there is none."""

    budget_s: float | None  # None: it takes no budget, and compiles once
    wall_s: float  # of its command: start-up, search, end
    kernel: PeerKernel | None = None
    reason: str = ""  # why there is no kernel
    build_s: float = 0.0  # of a second command that gives the kernel back, not part of the budget
    trials: tuple[LoggedTrial, ...] = ()
    own_s: float | None = None  # the tuner's own time of the chosen trial, from its search


@dataclass(frozen=True)
class Peer:
    """A tuner or library of the race."""

    name: str
    title: str  # in tables
    package: str  # whose version is printed
    requirements: tuple[str, ...]  # of pip, for an environment of its own; (): tuner's own environment
    dtypes: tuple[str, ...]  # of A and B
    settings: str  # how it is run
    source: str  # of these settings
    # runs the peer; yields an entry per budget in seconds, or one without a budget
    entries: Callable[[RaceMatmul, tuple[float, ...], PeerPlace], Iterator[PeerResult]]
    version: Callable[[], str] | None = None  # None: that of the package


def compiled_once(
    words: tuple[str, ...],
    kernel: PeerKernel,
    place: PeerPlace,
    limit_s: float,
    variables: dict[str, str] | None = None,
) -> PeerResult:
    """Runs a compiler; returns its kernel with the wall time of its command, or why there is none."""
    ran = run_for(words, place.folder, place.core, limit_s, LogWatch(), variables)
    if ran.status != 0:
        return PeerResult(None, ran.wall_s, reason=ran.failure)
    return PeerResult(None, ran.wall_s, kernel)


def best_until(trials: Iterable[LoggedTrial], seconds: float) -> tuple[int, LoggedTrial] | None:
    """Returns number and trial of the best that a log had after so many seconds; None: no success yet."""
    best: tuple[int, LoggedTrial] | None = None
    for number, trial in enumerate(trials):
        if trial.own_s is None or trial.elapsed_s > seconds:
            continue
        if best is None or best[1].own_s is None or trial.own_s < best[1].own_s:
            best = number, trial
    return best


# All trials until a budget, the best of them, a folder -> the command that built its kernel, and the kernel.
Rebuild = Callable[[tuple[LoggedTrial, ...], LoggedTrial, Path], tuple[EndedCommand, PeerKernel]]


def results_of_search(
    ran: EndedCommand,
    trials: tuple[LoggedTrial, ...],
    budgets_s: tuple[float, ...],
    folder: Path,
    rebuild: Rebuild,
) -> Iterator[PeerResult]:
    """Yields the best that one search without a budget of its own had after each budget, built again."""
    for budget_s in budgets_s:
        until = tuple(trial for trial in trials if trial.elapsed_s <= budget_s)
        wall_s = min(budget_s, ran.wall_s)
        best = best_until(trials, budget_s)
        if best is None:
            reason = NO_RESULT if ran.status is None else ran.failure
            yield PeerResult(budget_s, wall_s, reason=reason, trials=until)
            continue
        part = folder / f"{budget_s:g}s"
        part.mkdir()
        built, kernel = rebuild(until, best[1], part)
        if built.status != 0 or not Path(kernel.library).exists():
            yield PeerResult(budget_s, wall_s, reason=f"the best again: {built.failure}", trials=until)
            continue
        yield PeerResult(budget_s, wall_s, kernel, "", built.wall_s, until, best[1].own_s)
