"""The ask/tell search loop, as a generator of trials."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tuner.core.bench import AbstractBench, BoundRecord
from tuner.core.candidate import Candidate
from tuner.core.sampler import AbstractSampler
from tuner.core.target import Effort

EARLY_STOPPED = 2.0  # a candidate slower than this many times the incumbent is early-stopped


@dataclass(frozen=True)
class Trial:
    """One proposal of the sampler, with its number, its row in the feasible set, and its outcome."""

    number: int  # 0, 1, ... in the order of proposals
    row: int  # index of the configuration in the feasible set
    bound: BoundRecord


def search(
    sampler: AbstractSampler,
    candidate_of: Callable[[int], Candidate],
    bench: AbstractBench,
    is_over: Callable[[int], bool],  # (trials proposed so far) -> whether the budget is spent
    on_proposal: Callable[[int, int, Candidate], None],  # (number, row, candidate), before it runs
    pending_limit: int = 1,  # proposals in flight
    first: int = 0,  # number of the first proposal: a resumed run continues the numbers
    effort: Effort = Effort(),
    incumbent_s: float | None = None,
) -> Iterator[Trial]:
    """Runs the search loop of a sampler; yields one trial per candidate, in the order of proposals.

    Args:
        sampler: Proposes rows of the feasible set, and receives the candidates' times.
        candidate_of: Returns the candidate of a row.
        bench: Compiles, verifies and times the candidates.
        is_over: Takes the number of trials proposed so far; returns whether the budget is spent.
        on_proposal: Called with (number, row, candidate) before the candidate is started.
        pending_limit: The largest number of candidates that are started and not finished.
        first: Number of the first proposal; a resumed run continues the numbers.
        effort: How long each candidate is timed; a candidate is early-stopped at EARLY_STOPPED (2) times the
            least time so far.
        incumbent_s: The least time known before the search, in seconds per call; None: unknown.

    At proposal ``n`` the sampler knows the outcomes of the proposals up to ``n - pending_limit``, and no
    later ones: the list of trials depends on the results, not on which process was faster. Nothing is stored
    here.
    """
    pending: deque[tuple[int, int]] = deque()
    number = first
    while True:
        while len(pending) < pending_limit and not is_over(number):
            row = sampler.ask(number)
            if row is None:
                break
            candidate = candidate_of(row)
            on_proposal(number, row, candidate)
            stop_above_s = None if incumbent_s is None else EARLY_STOPPED * incumbent_s
            bench.start(number, candidate, replace(effort, stop_above_s=stop_above_s))
            pending.append((number, row))
            number += 1
        if not pending:
            return
        oldest, row = pending.popleft()
        finished = bench.finish()
        median_s = finished.record.median_s
        sampler.tell(row, median_s)
        if median_s is not None and (incumbent_s is None or median_s < incumbent_s):
            incumbent_s = median_s
        yield Trial(oldest, row, finished)
