"""Problems and candidates as written in headers of scripts, in recordings and in JSON documents."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from tuner.core.candidate import Candidate
from tuner.core.dataclass_json import form, if_changed, whole
from tuner.core.problem import NUMPY_ALIGNMENT, SIZE_LIMIT, WARM, Problem, split_extents
from tuner.core.target_name import TargetName


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
    group: str = field(default="", metadata=if_changed())  # Problem.group

    @classmethod
    def of(cls, problem: Problem) -> "ProblemDocument":
        """Converts a problem to the form that JSON documents store."""
        types = (problem.dtype, problem.layout, problem.epilogue, problem.output)
        return cls(problem.operation, problem.extents, *types, problem.align, problem.cache, problem.group)

    @property
    def problem(self) -> Problem:
        """Returns the problem of the document. Raises UsageError for values that no problem may have."""
        batch, sizes = split_extents(self.op, self.shape)
        types = (self.dtype, self.layout, self.epilogue, self.output)
        return Problem(self.op, sizes, *types, batch, self.align, self.cache, self.group)


def with_alignment(document: Any) -> Any:
    """Returns the JSON of an exported script or a gate's entry, with its problem's alignment.

    Older versions wrote none, and timed on a CPU with operands on cache lines: 64. Other JSON is unchanged.
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
