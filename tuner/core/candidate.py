"""A candidate (strategy and knob values), its strategy and target by name, and their JSON documents."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from tuner.core.fusions import FusionFacts
from tuner.core.problem import NUMPY_ALIGNMENT, SIZE_LIMIT, WARM, Problem
from tuner.core.problem_classes import FusedProblem, problem_of_values
from tuner.core.serialization import form, if_changed, number, whole

Value = int | str
PATH_FOLLOWS = "=/"  # in ``ChosenStrategy.text``; names of recorded strategies may have a "=" too
REOPENED = ":reopened"
LIBRARY = "&library="  # in ``ChosenStrategy.text``, before the path of each
CPU = "cpu"
CUDA = "cuda"
SIMULATOR = "simulator"  # runs the same PTX as CUDA
REPLAY = "replay"  # outcomes are read from a recording; nothing is compiled or run
SECONDS_LIMIT = 1e6  # of one call: eleven days
NOISE_LIMIT = 1e6  # relative; enough even if all processes were paused during one of the two timings
SECONDS_TEXT = f"seconds, more than 0 and up to {SECONDS_LIMIT:.0f}"


@dataclass(frozen=True)
class Candidate:
    """A strategy with a value for each of its knobs: one configuration of the search space.

    Hashable. A partial candidate, which some functions accept, leaves knobs out.
    """

    strategy: str
    choices: tuple[tuple[str, Value], ...]  # (knob, value), sorted by knob

    @classmethod
    def of(cls, strategy: str, values: dict[str, Value]) -> "Candidate":
        """Returns the candidate of a strategy with the given knob values, sorted by the knobs' names."""
        return cls(strategy, tuple(sorted(values.items())))

    @property
    def text(self) -> str:
        """Returns the candidate as ``strategy(knob=value, ...)``, for printing and logging."""
        return f"{self.strategy}({', '.join(f'{name}={value}' for name, value in self.choices)})"


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
class TargetName:
    """A target as on the command line: a kind (``cpu``), or kind and detail (``cuda:sm_90``)."""

    kind: str  # a name of ``tuner.targets.registry.TARGETS``, or "replay", which has no machine
    detail: str = ""  # of a GPU the chip, of a replay the recording; "" where the kind has no detail

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """Returns ``kind`` or ``kind:detail``: the form in databases and on the command line."""
        if self.detail:
            return f"{self.kind}:{self.detail}"
        return self.kind

    @property
    def has_machine(self) -> bool:
        """Returns whether outcomes are measured on a machine; False for a replay, which reads a recording."""
        return self.kind != REPLAY

    @property
    def is_on_cpu(self) -> bool:
        """Returns whether candidates run on the CPU of a machine: True for cpu only."""
        return self.kind == CPU

    @property
    def is_on_gpu(self) -> bool:
        """Returns whether candidates run on a real GPU: True for cuda, False for the simulator of a GPU."""
        return self.kind == CUDA

    @classmethod
    def parse(cls, text: str) -> "TargetName":
        """Returns the target of a text ``kind`` or ``kind:detail``; does not check that it exists."""
        kind, _, detail = text.partition(":")
        return cls(kind, detail)

    def is_of(self, kind: str) -> bool:
        """Returns whether the target's kind is ``kind``, such as "cpu" or "cuda".

        Details are not compared.
        """
        return self.kind == kind


@dataclass(frozen=True)
class ProblemDocument:
    """A problem as a JSON object; its ``shape`` is [m, n, k], for a batch_matmul [batch, m, n, k]."""

    op: str
    shape: tuple[Annotated[int, whole(0, SIZE_LIMIT)], ...]  # Problem.extents
    dtype: str
    layout: str
    epilogue: str
    output: str = ""  # Problem.output
    align: str = NUMPY_ALIGNMENT  # Problem.align
    cache: str = WARM  # Problem.cache
    weights: str = field(default="", metadata=if_changed())  # Problem.weights
    fusion: str = field(default="", metadata=if_changed())  # FusedProblem.text
    facts: FusionFacts | None = field(default=None, metadata=if_changed())  # FusedProblem.facts

    @classmethod
    def of(cls, problem: Problem) -> "ProblemDocument":
        fused = problem if isinstance(problem, FusedProblem) else None
        return cls(
            op=problem.operation,
            shape=problem.extents,
            weights=problem.weights,
            fusion="" if fused is None else fused.text,
            facts=None if fused is None else fused.facts,
            **_options(problem),
        )

    @property
    def problem(self) -> Problem:
        of_fusion = (self.weights, self.fusion, self.facts)
        return problem_of_values(self.op, self.shape, _options(self), *of_fusion)


def _options(given: Problem | ProblemDocument) -> dict[str, str]:
    return {
        name: getattr(given, name) for name in ("dtype", "layout", "epilogue", "output", "align", "cache")
    }


def with_alignment(document: Any) -> Any:
    """Returns a JSON document with ``"align": "64"`` added to its problem if it is of a CPU and has none.

    ``document``: an exported script's JSON, or an entry of a gate. Older versions wrote no alignment, and
    timed on a CPU with operands on cache lines. Other JSON is returned unchanged.
    """
    match document:
        case {"problem": dict(problem), "target": target} if "align" not in problem and _is_on_cpu(target):
            return {**document, "problem": {**problem, "align": "64"}}
    return document


def _is_on_cpu(target: object) -> bool:
    match target:
        case str(kind) | {"kind": str(kind)}:
            return TargetName.parse(kind).is_on_cpu
    return False


PROBLEM: Final = form(ProblemDocument, ProblemDocument.of, lambda document: document.problem)


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """Converts a candidate to ``{"strategy": name, "knobs": {knob: value}}``, for JSON."""
    return {"strategy": candidate.strategy, "knobs": dict(candidate.choices)}


Seconds = Annotated[float, number(SECONDS_TEXT, lambda found: 0 < found <= SECONDS_LIMIT)]
Share = Annotated[
    float, number(f"a number from 0 to {NOISE_LIMIT:.0f}", lambda found: 0 <= found <= NOISE_LIMIT)
]


@dataclass(frozen=True)
class RecordedRound:
    """Times of an exported script's kernel and of other codes, timed interleaved in one timing round.

    ``tuner check`` later compares with them. Seconds are per call; on another day all codes may be slower.
    """

    kernel_s: Seconds  # of the script's kernel: lower quartile of its samples
    noise: Share  # relative difference between two timings of the same code in the round
    library_s: Seconds | None = None  # of the baseline library: lower quartile; None: not timed in the round
    panel_product_s: Seconds | None = None  # lower quartile, a product of small packed panels; None: on a GPU
