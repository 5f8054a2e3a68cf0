"""A configuration for a problem without a search: by shipped results, a cost model, or GPU machine code.

Nothing is timed or stored. The choice says where it comes from and, as far as known, how fast it is. Where
nothing else chooses, it is the initial configuration of the search-space file.
"""

import datetime
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tuner.core.candidate import Candidate, candidate_document
from tuner.core.compiled_code import Predict
from tuner.core.errors import CandidateError, UsageError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.problem_documents import ProblemDocument
from tuner.core.runs import RunSettings
from tuner.core.serialization import encode, utc_text
from tuner.mlir.cpu.needed_instructions import script_instructions
from tuner.space.scripts.header import ScriptProvenance, custom_ops
from tuner.targets.backends import Backends
from tuner.targets.target import Bind, Plan, Target
from tuner.tuning.pretuned import class_of, shipped_picks, speed_text
from tuner.tuning.rule import ProblemSpaces
from tuner.version import __version__

MACHINE_CODES = 6  # configurations of a GPU that are compiled; each takes a second or two
COST_MODEL = "the cost model's first choice"
NOT_PREDICTED = "the first initial configuration that compiles; cycles were not predicted"
LISTED = "the initial configuration of the search-space file"
NOT_TIMED = "not tuned and not timed here"
UNKNOWN_SPEED = "speed unknown: nothing was measured on {}"


@dataclass(frozen=True)
class UntunedChoice:
    """A configuration that was chosen without timing anything, with its script."""

    settings: RunSettings
    machine: Machine
    mlir: str  # version of the compiler
    candidate: Candidate
    script: Script
    origin: str  # how it was chosen: "shipped results of zen5 (25 shapes)"
    speed: str  # what is known of its speed relative to what a search finds; a range, or why unknown

    @property
    def text(self) -> str:
        """Returns a line that says how the configuration was chosen, and how fast it is likely to be."""
        return f"{NOT_TIMED}: {self.origin}; {self.speed}"

    @property
    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the choice, with ``is_timed`` false."""
        return {
            "problem": encode(ProblemDocument.of(self.settings.problem)),
            "target": self.settings.target.text,
            "threads": self.settings.threads,
            **candidate_document(self.candidate),
            "is_timed": False,
            "origin": self.origin,
            "speed": self.speed,
        }

    @property
    def provenance(self) -> ScriptProvenance:
        """Returns the provenance for the header of the exported script, without a time."""
        settings = self.settings
        now = datetime.datetime.now(datetime.UTC)
        return ScriptProvenance(
            tuner=__version__,
            problem=settings.problem,
            target=settings.target,
            threads=settings.threads,
            machine=self.machine.name,
            needs=script_instructions(self.script.text, settings.problem.multiplied_dtype),
            strategy=self.candidate.strategy,
            knobs=self.candidate.choices,
            median_s=None,
            interval_s=None,
            untuned=self.text,
            trial=0,
            run=0,
            mlir=self.mlir,
            date=utc_text(now),
        )


def shipped_kernel(problem: Problem, machine: Machine, threads: int) -> Callable[..., Any] | None:
    """Returns the first choice of the shipped results as a function of numpy arrays, compiled now.

    None if no results are shipped for this class of processor and these threads, or none applies to the
    problem.
    """
    from tuner.targets.cpu.callables import load_callable  # loads MLIR

    space = ProblemSpaces.shipped(machine, threads)
    picks = shipped_picks(space, problem)
    if picks is None or not picks.shipped.is_own:
        return None
    script = space.script(problem, picks.candidates[0])
    origin = f"{NOT_TIMED}: {picks.origin}"
    kernel: Callable[..., Any] = load_callable(problem, script.text, threads, origin)
    return kernel


@dataclass(frozen=True)
class _Pick:
    candidate: Candidate
    script: Script
    origin: str
    speed: str


def untuned_choice(settings: RunSettings, backends: Backends, *, is_stock: bool = False) -> UntunedChoice:
    """Returns a configuration for the problem, target and threads of ``settings``, without a search.

    On a CPU it is the choice of the shipped results for the machine's class of processors or the nearest one,
    else that of the cost model. On a GPU it is, of a few configurations, the one with the fewest cycles
    predicted from its machine code; the first that compiles where cycles cannot be predicted for each (there
    is no nvdisasm or ptxas, or code that the model cannot read). ``is_stock``: the first whose script stock
    ``mlir-opt`` runs. Raises UsageError if no configuration is feasible, none of a few can be compiled, or
    none is a stock one; on a CPU CandidateError(BIND) for a template of the user that fails.
    """
    target = backends.target_of_run(settings)
    machine = target.machine(settings.target)
    plan = target.plan(settings, machine)
    bind = target.bind(settings.strategies, settings.problem, settings.threads, machine)
    picks: Iterable[_Pick]
    if machine.chip:
        picks = _by_machine_code(settings, target, plan, bind, backends.predicted)
    else:
        picks = itertools.chain(_by_shipped(settings, machine, plan, bind), _by_model(machine, plan, bind))
    pick = next((pick for pick in picks if not (is_stock and custom_ops(pick.script.text))), None)
    if pick is None:
        what = "run by stock mlir-opt" if is_stock else "compiled"
        raise UsageError(f"{settings.problem.key}: none of the initial configurations can be {what}")
    mlir = target.compiler(settings.target).mlir
    return UntunedChoice(settings, machine, mlir, pick.candidate, pick.script, pick.origin, pick.speed)


def _by_shipped(settings: RunSettings, machine: Machine, plan: Plan, bind: Bind) -> Iterator[_Pick]:
    problem = settings.problem
    picks = shipped_picks(ProblemSpaces.shipped(machine, settings.threads), problem)
    if picks is None:
        return
    speed = f"speed {speed_text(picks.shipped.rule)}"
    if not picks.shipped.is_own:
        speed = f"{UNKNOWN_SPEED.format(machine.processor)}; there {speed}"
    elif problem != MatmulProblem(problem.operation, problem.sizes, problem.dtype):
        speed += ", of layout nn without an epilogue"
    for candidate in picks.candidates:
        if plan.feasible.row_of(candidate) is not None:
            yield _Pick(candidate, bind(candidate), picks.origin, speed)


def _by_model(machine: Machine, plan: Plan, bind: Bind) -> Iterator[_Pick]:
    speed = UNKNOWN_SPEED.format(class_of(machine))
    feasible = plan.feasible
    seeds, listed = (map(feasible.candidate, rows) for rows in (plan.seeds({}), plan.first))
    for origin, candidates in ((COST_MODEL, seeds), (LISTED, (*listed, feasible.first_preferred))):
        for candidate in candidates:
            yield _Pick(candidate, bind(candidate), origin, speed)


def _by_machine_code(
    settings: RunSettings, target: Target, plan: Plan, bind: Bind, predict: Predict
) -> list[_Pick]:
    """Returns the configurations that compile, fewest cycles first; in order if one has no prediction.

    Those of the search-space file come first, then those of the cost model.
    """
    compiler = target.children(settings.target, settings.problem, settings.threads).compiler.build()
    compiled = []
    rows = tuple(dict.fromkeys((*plan.first, *plan.seeds({}))))[:MACHINE_CODES]
    candidates = [plan.feasible.candidate(row) for row in rows]
    for candidate in candidates or [plan.feasible.first_preferred]:
        try:
            script = bind(candidate)
            artifact = compiler.compile(settings.problem, script)
        except CandidateError:
            continue
        if artifact.refusal is not None:
            continue
        work = predict(settings.problem, artifact.code)
        compiled.append((None if work is None else work.cycles, candidate, script))
    unknown = UNKNOWN_SPEED.format("a GPU")
    by_code = f"the least predicted cycles of the machine code of {len(compiled)} configurations"
    if any(cycles is None for cycles, *_ in compiled):
        return [_Pick(candidate, script, NOT_PREDICTED, unknown) for _, candidate, script in compiled]
    compiled.sort(key=lambda ranked: ranked[0] or 0.0)
    return [_Pick(candidate, script, by_code, unknown) for _, candidate, script in compiled]
