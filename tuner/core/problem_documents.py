"""Problems as JSON objects, as exported scripts, gate files, recordings, rules and JSON outputs have them."""

from dataclasses import dataclass, field
from typing import Annotated, Final

from tuner.core.fusion_facts import FusionFacts
from tuner.core.problem import NUMPY_ALIGNMENT, SIZE_LIMIT, WARM, Problem
from tuner.core.problem_classes import FusedProblem, problem_of_values
from tuner.core.serialization import form, if_changed, whole


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
        text = ""
        facts = None
        if isinstance(problem, FusedProblem):
            text = problem.text
            facts = problem.facts
        return cls(
            op=problem.operation,
            shape=problem.extents,
            weights=problem.weights,
            fusion=text,
            facts=facts,
            **_options(problem),
        )

    @property
    def problem(self) -> Problem:
        of_fusion = (self.weights, self.fusion, self.facts)
        return problem_of_values(self.op, self.shape, _options(self), *of_fusion)


def _options(problem: Problem | ProblemDocument) -> dict[str, str]:
    return {
        name: getattr(problem, name) for name in ("dtype", "layout", "epilogue", "output", "align", "cache")
    }


PROBLEM: Final = form(ProblemDocument, ProblemDocument.of, lambda document: document.problem)
