"""A run of the tuner as the results database stores it: settings, compiler, baseline, state.

``RunSettings`` is all that a run needs to be resumed: the problem, ``ChosenStrategy`` and
``InitialConfiguration`` values, the limits. ``Run`` adds what was measured: its ``Compiler``, its
``Baseline``, its reliability.
"""

import datetime
from dataclasses import dataclass, field
from pathlib import Path

from tuner.core.candidate import Candidate, TargetName
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.reliability import Reliability, unknown
from tuner.core.roofline import Roofline

# Origins of an initial configuration.
GIVEN = "given"  # in a file of the user
WARM_START = "warm start"  # among the best of a similar problem
SHIPPED = "shipped"  # chosen by results that come with tuner
SPACE_FILE = "space file"  # listed under ``first`` in the search-space file
SEED = "seed"  # ranked high by a cost model of the machine
ORIGINS = (GIVEN, WARM_START, SHIPPED, SPACE_FILE, SEED)

NO_ROUND = unknown("no final re-measurement with a noise floor")


PATH_FOLLOWS = "=/"  # in ``ChosenStrategy.text``; names of recorded strategies may have a "=" too
REOPENED = ":reopened"
NO_FILE = Path("/dev/null")  # no file can be below it: of a script that came as text, the stored one is all
JUDGED = "judged"  # strategy and sampler of a run whose scripts were given to ``tuner judge``
LIBRARY = "&library="  # in ``ChosenStrategy.text``, before the path of each


@dataclass(frozen=True)
class ChosenStrategy:
    """A strategy that a run tries: its name, and the absolute path of its script if it is a user's."""

    name: str
    path: Path | None = None  # None: the shipped script
    reopens: bool = False  # knobs whose value the script selects are open again, with all their options
    libraries: tuple[Path, ...] = ()  # scripts whose sequences the script uses

    @property
    def text(self) -> str:
        """Returns the stored form: ``name``, ``name=/path/to/script``, ``name:reopened=/path/to/script``.

        The paths of libraries follow: ``name=/path/to/script&library=/path/to/library``.
        """
        if self.path is None:
            return self.name
        mark = REOPENED if self.reopens else ""
        return f"{self.name}{mark}={self.path}{''.join(f'{LIBRARY}{path}' for path in self.libraries)}"

    @classmethod
    def parse(cls, text: str) -> "ChosenStrategy":
        """Returns the strategy of its stored form; the inverse of ``text``."""
        name, has_path, rest = text.partition(PATH_FOLLOWS)
        script, *libraries = rest.split(LIBRARY)
        path = Path(f"/{script}") if has_path else None
        return cls(name.removesuffix(REOPENED), path, name.endswith(REOPENED), tuple(map(Path, libraries)))


@dataclass(frozen=True)
class InitialConfiguration:
    """A candidate that a run proposes before the sampler's; the problem's constraints may exclude it.

    Raises ValueError for an origin that is not one of ORIGINS.
    """

    candidate: Candidate
    origin: str  # one of ORIGINS
    source: str = ""  # of a warm start: "512x512x512 (run 3)"

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise ValueError(f"origin: found {self.origin!r}, allowed {', '.join(ORIGINS)}")


@dataclass(frozen=True)
class RunSettings:
    """All settings of a run, such as problem, target, sampler and budget: enough to resume the run."""

    problem: Problem
    target: TargetName
    threads: int
    strategies: tuple[ChosenStrategy, ...]
    space_yaml: str  # text of the search space in force; "" for a replay
    sampler: str
    seed: int
    trials: int | None  # budget; None: no limit
    budget_s: float | None  # budget in seconds; None: no limit
    workers: int
    fresh: bool = False  # compile and time again what is known
    warm_start: bool = False  # begin with the best candidates of the nearest problems
    warm_files: tuple[str, ...] = ()  # recordings to take warm-start points from as well
    # proposed before any other candidate; None: not chosen yet
    first: tuple[InitialConfiguration, ...] | None = None
    # times of the same configurations on other machines when the run began: see tuner.search.prior
    prior: str = field(default="", repr=False)
    recording: str = ""  # of a replay: the path of its file
    baseline_library: str = ""  # "best", or a library by name; "": the default of the target and the type
    seeds: tuple[Candidate, ...] = field(default=(), compare=False)  # of the user; ``first`` has them
    # Names the search space in messages: its file; the default for a stored run, whose file may have changed
    space_name: str = field(default="search space", compare=False)


@dataclass(frozen=True)
class Compiler:
    """Identifies what compiles scripts and verifies results: versions, hash of sources, verifier number.

    An outcome is reused for an equal script where the fingerprint is equal, and for equal code where the
    tools are: other sources that make the same code change nothing.
    """

    mlir: str  # LLVM version string of the bindings
    packages: tuple[tuple[str, str], ...]  # (distribution, version)
    pipeline_sha256: str  # of the files that turn a script into code
    verifier: str = (
        ""  # number of what verifies results, raised by hand; "" in results that are older than it
    )

    @property
    def tools(self) -> str:
        """Returns one line of versions and verifier number; if equal, equal code has equal verdicts."""
        versions = " ".join(f"{name}=={version}" for name, version in self.packages)
        return f"{self.mlir} {versions} verifier:{self.verifier}"

    @property
    def fingerprint(self) -> str:
        """Returns one line of tools and source hash, which changes whenever generated code may change."""
        return f"{self.tools} pipeline:{self.pipeline_sha256[:12]}"

    def changes_to(self, later: "Compiler") -> tuple[str, ...]:
        """Returns the differences to a ``later`` compiler, a text each: packages, LLVM, passes, verifier."""
        before = dict(self.packages)
        after = dict(later.packages)
        changes = [
            f"{name} {before.get(name, 'none')} -> {after.get(name, 'none')}"
            for name in before | after
            if before.get(name) != after.get(name)
        ]
        if self.mlir != later.mlir:
            changes.append(f"{self.mlir} -> {later.mlir}")
        if self.pipeline_sha256 != later.pipeline_sha256:
            changes.append("tuner's passes")
        if self.verifier != later.verifier:
            changes.append("tuner's verifier")
        return tuple(changes)


@dataclass(frozen=True)
class LibraryTime:
    """The time of one of the libraries that a baseline was chosen from, or why it has no time."""

    library: str  # "openblas", "mkl"
    name: str  # with version and kernel; "": it failed before they were known
    median_s: float | None = None  # seconds per call; None: it failed
    interval_s: tuple[float, float] | None = None  # 95 % bootstrap interval of the median
    failure: str = ""  # one line; "": it was timed


@dataclass(frozen=True)
class Baseline:
    """The time of a baseline library for a problem: timed alone, or interleaved with the top trials."""

    name: str  # "OpenBLAS 0.3.30 SkylakeX", "oneDNN ..."
    threads: int  # 0: on a GPU
    measurement: Measurement
    is_interleaved: bool = False  # timed sample by sample with the top candidates, not in a process alone
    # All that were timed to choose the fastest, that one first, failed ones last; (): there was no choice
    libraries: tuple[LibraryTime, ...] = ()


@dataclass(frozen=True)
class RemoteMeasurement:
    """Where the times of a run were measured, if not on the machine that stores the run."""

    session: str  # uuid of the measuring session
    bundle: str  # sha256 of the bundle's manifest
    tuner: str  # version that measured
    driver: str  # the newest CUDA version that the measuring machine's driver supports
    source: str  # uuid of the run that proposed the candidates, under the same numbers


@dataclass(frozen=True)
class CampaignPlace:
    """The position of a run in its campaign, a set of runs that share one budget."""

    campaign: int  # id of the campaign
    place: int  # among the runs of the campaign: 0, 1, ...
    name: str  # of the problem, such as that of a layer; "": none
    count: int  # how often the problem occurs in what is tuned


@dataclass(frozen=True, repr=False)
class Run:
    """One run of the tuner: settings, machine, compiler, status, and times and noise of the whole run."""

    id: int
    settings: RunSettings
    machine: Machine
    compiler: Compiler
    tuner_version: str
    status: str  # "running", "done", "interrupted"; as it was when the run was read
    created: datetime.datetime  # UTC
    seconds: float | None  # wall time of all sessions of the run
    noise: float | None  # A/A noise floor: relative differences below it mean nothing
    load_average: float | None  # at the start of the run
    baseline: Baseline | None
    search_s: float | None = None  # part of ``seconds`` before the final re-measurement; None: unknown
    idle_s: float | None = None  # part of ``search_s`` in which nothing was loaded, verified or timed
    elsewhere: RemoteMeasurement | None = None  # None: measured on this machine
    roofline: Roofline | None = None  # measured at the end; None: interrupted, or the measurement failed
    reliability: Reliability = NO_ROUND  # of the times of the final re-measurement
    uuid: str = ""  # the same in every database that the run is merged into
    campaign: CampaignPlace | None = None  # None: a run of its own

    def __repr__(self) -> str:
        """Returns one line: id, problem, target, machine, status."""
        problem = self.settings.problem.key
        target = self.settings.target
        return f"Run({self.id}: {problem}, {target} on {self.machine.name}, {self.status})"

    @property
    def idle_share(self) -> float | None:
        """Returns the share of the search in which nothing was loaded, verified or timed; None: unknown."""
        if not self.search_s or self.idle_s is None:
            return None
        return self.idle_s / self.search_s
