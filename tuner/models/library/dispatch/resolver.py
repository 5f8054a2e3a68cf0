"""Finds the kernel, or the baseline, that computes a product, and records why it was chosen.

``Resolver`` looks in a rule file, the results database and the results of first uses; it returns a
``Chosen``.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tuner.analysis.portfolio import MODEL, SAME_WEIGHTS, TUNED, ranked_columns
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import CPU, Candidate, TargetName
from tuner.core.errors import CandidateError, UsageError
from tuner.core.problem import Problem
from tuner.core.reliability import Reliability
from tuner.core.runs import Run
from tuner.core.serialization import seconds_text
from tuner.core.trials import StoredTrial
from tuner.models.library.dispatch.first_use import (
    BoundCandidate,
    FirstUse,
    FirstUseCache,
    FirstUseKey,
    KernelCall,
    KernelLoader,
    MatmulCall,
    Otherwise,
    baseline_name,
    numpy_product,
    time_first_use,
)
from tuner.results import database_name
from tuner.results.best_trials import best_here
from tuner.runtime.process_state import between_forks
from tuner.targets.backends import Backends
from tuner.tuning.pretuned import shipped_picks
from tuner.tuning.rule import DispatchRule, ProblemSpaces, read_rule

FIRST_USE = "first use"
SHIPPED = "shipped"
BASELINE = "baseline"
SOURCES = (TUNED, SAME_WEIGHTS, FIRST_USE, SHIPPED, MODEL, BASELINE)
TRIED = 3  # configurations that are timed at the first use of a shape without tuned neighbours
SHIPPED_TRIED = 2  # of shipped results: each takes a sixth of a second, a first call at most one second


@dataclass(frozen=True)
class Chosen:
    """How a product is computed: by a kernel (``candidate``) or the baseline; which source chose it."""

    source: str  # one of SOURCES
    problem: Problem | None  # None: nothing that kernels are tuned for
    candidate: Candidate | None = None  # as it is on the problem; None: the baseline
    reason: str = ""  # why the baseline, in one line; "": a kernel
    first_use: FirstUse | None = None  # what was timed when the shape came first; None: nothing

    @property
    def is_tuned(self) -> bool:
        """Returns whether the kernel was tuned for exactly this problem."""
        return self.source == TUNED

    @property
    def miss(self) -> str:
        """Returns in one line what runs in place of a kernel tuned for exactly this problem.

        "" where such a kernel runs.
        """
        if self.is_tuned:
            return ""
        if self.source == BASELINE:
            return f"baseline: {self.reason}"
        return f"never tuned: {self.source}"


@dataclass(frozen=True)
class Ranked:
    """The configurations for a problem, the preferred one first, before anything is timed here."""

    source: str  # TUNED, SAME_WEIGHTS, SHIPPED, MODEL; BASELINE: there is none
    candidates: tuple[BoundCandidate, ...] = ()
    # why there is none, or that the baseline's stored time is less than the first one's; "": neither
    reason: str = ""


def tuned_here(
    problem: Problem, backends: Backends, db: str | Path | None, threads: int
) -> tuple[Run, StoredTrial] | None:
    """Returns the run and the best trial of a problem on this machine; None if it was not tuned here.

    ``db``: path or URL of the results database, None for the default one; ``threads``: of the kernel.
    """
    if not database_name.is_named(db) and not Path(database_name.default_file()).exists():
        return None  # until a run creates the file
    from tuner.db.store import Store  # loads SQLAlchemy

    with Store.open_or_empty(database_name.which_database(db)) as store:
        try:
            best = best_here(store, backends, problem, CPU, threads).best
        except UsageError:
            return None
        return store.run(best.run), best


class Resolver:
    """Finds what computes a problem, from one rule file or database, for one number of threads."""

    def __init__(
        self, backends: Backends, rule: Path | None, db: str | Path | None, threads: int, cache: FirstUseCache
    ) -> None:
        """Reads the rule file ``rule``, if any.

        Raises UsageError for a file that is damaged, of another machine, number of threads or search space.
        """
        self._backends = backends
        self._db = db
        self._threads = threads
        self._cache = cache
        self._space = ProblemSpaces.shipped(backends.machine(), threads)
        self._rule: DispatchRule | None = None if rule is None else read_rule(rule, self._space)
        self._loader = KernelLoader(threads)

    def resolved(
        self, problem: Problem, otherwise: Otherwise, *, measures: bool
    ) -> tuple[Chosen, MatmulCall]:
        """Returns the choice for a problem and its function: a kernel, else ``np.matmul`` with the reason.

        ``measures``: verify and time a few kernels if this was not done before on this machine, and use the
        fastest if it beats ``np.matmul``. ``otherwise``: what a kernel calls for arrays that it cannot take.
        """
        try:
            with between_forks():
                ranked = self._ranked(problem, measures=measures)
            if not ranked.candidates:
                return _baseline(problem, ranked.reason)
            if measures:
                key = FirstUseKey(
                    problem, self._space.machine.name, self._compiler, self._threads, baseline_name()
                )
                calls: dict[Candidate, KernelCall] = {}
                with self._cache.held(key):
                    first_use = self._cache.read(key)
                    if first_use is None or not first_use.has(ranked.candidates):
                        first_use, calls = time_first_use(problem, ranked.candidates, self._loader, otherwise)
                        self._cache.write(key, first_use)
                candidate = first_use.fastest(tuple(bound.candidate for bound in ranked.candidates))
                if candidate is None:
                    return _baseline(problem, first_use.why_baseline, first_use)
                scripts = {bound.candidate: bound.script_text for bound in ranked.candidates}
                call = calls.get(candidate) or self._loader.loaded(problem, scripts[candidate], otherwise)
                source = FIRST_USE if ranked.source in (SHIPPED, MODEL) else ranked.source
                return Chosen(source, problem, candidate, first_use=first_use), call
            if ranked.reason:
                return _baseline(problem, ranked.reason)
            first = ranked.candidates[0]
            call = self._loader.loaded(problem, first.script_text, otherwise)
            return Chosen(ranked.source, problem, first.candidate), call
        except CandidateError as error:
            return _baseline(problem, f"{error.stage.value}: {error.reason}")

    def _ranked(self, problem: Problem, *, measures: bool) -> Ranked:
        if self._rule is None:
            known = self._stored(problem) or self._shipped(problem, measures=measures)
            if known is not None:
                return known
            columns = self._space.first
            matrix = TimeMatrix((), (), columns, (), (), ())
        else:
            columns = self._rule.columns
            matrix = self._rule.matrix()
        try:
            projected = self._space.projected(problem, columns)
        except UsageError as error:
            return Ranked(BASELINE, reason=error.message)
        ranking = ranked_columns(matrix, projected.new_problem)
        if not ranking.columns:
            return Ranked(BASELINE, reason="no configuration applies")
        if self._rule is None and not measures:
            return Ranked(BASELINE, reason="never tuned, and no rule file")
        order = [projected.candidates[column] for column in ranking.columns]
        chosen = order[:1]
        if measures and ranking.source == MODEL:  # the initial configuration of the search space, too
            defaults = self._space.projected(problem, self._space.first).candidates
            initial = [default for default in defaults if default is not None]
            chosen = [*order[:TRIED], *initial[:1]]
        unique = tuple(dict.fromkeys(candidate for candidate in chosen if candidate is not None))
        slower = self._slower_as_stored(problem, ranking.source)
        return Ranked(ranking.source, self._bound(problem, unique), slower)

    def _bound(self, problem: Problem, candidates: tuple[Candidate, ...]) -> tuple[BoundCandidate, ...]:
        scripts = [self._space.script(problem, candidate).text for candidate in candidates]
        return tuple(map(BoundCandidate, candidates, scripts))

    def _stored(self, problem: Problem) -> Ranked | None:
        tuned = tuned_here(problem, self._backends, self._db, self._threads)
        if tuned is None:
            return None
        run, best = tuned
        library_s = None if run.baseline is None else run.baseline.measurement.median_s
        bound = (BoundCandidate(best.record.candidate, best.script_text),)
        return Ranked(TUNED, bound, _slower(best.best_s, library_s, run.reliability))

    def _shipped(self, problem: Problem, *, measures: bool) -> Ranked | None:
        picks = shipped_picks(self._space, problem)
        if picks is None:
            return None
        usable = picks.candidates[:SHIPPED_TRIED]
        if not measures:  # untimed, only that of the same class of processor
            usable = usable[: int(picks.shipped.is_own)]
        if not usable:
            return Ranked(BASELINE, reason=f"never tuned, and {picks.origin} are of other processors")
        return Ranked(SHIPPED, self._bound(problem, usable))

    def _slower_as_stored(self, problem: Problem, source: str) -> str:
        tuned = None if self._rule is None or source != TUNED else self._rule.tuned(problem)
        if tuned is None:
            return ""
        best_s = min((min(rounds) for rounds in tuned.rounds_s if rounds), default=None)
        return _slower(best_s, tuned.baseline_s, tuned.reliability)

    @cached_property
    def _compiler(self) -> str:
        target = TargetName.parse(CPU)
        return self._backends.target(target).compiler(target).fingerprint


def _baseline(problem: Problem, reason: str, first_use: FirstUse | None = None) -> tuple[Chosen, MatmulCall]:
    return Chosen(BASELINE, problem, reason=reason, first_use=first_use), numpy_product


def _slower(best_s: float | None, library_s: float | None, reliability: Reliability) -> str:
    if best_s is None or library_s is None or best_s <= library_s:
        return ""
    times_text = f"{seconds_text(library_s)}, the kernel {seconds_text(best_s)}"
    doubt = "" if reliability.is_reliable else f" ({reliability.text})"
    return f"faster when the problem was tuned: {times_text}{doubt}"
