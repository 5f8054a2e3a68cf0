"""The port (abstract interface) that compiles, verifies and times candidates."""

import abc
from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.record import Measurement, Record
from tuner.core.runs import Baseline
from tuner.core.target import Artifact, Effort, Script


@dataclass(frozen=True)
class BoundRecord:
    """A record with the script that its candidate was bound to, so that the candidate is bound only once."""

    record: Record
    script: Script  # empty where binding failed
    artifact: Artifact | None = None  # of the script, where kept: final re-measurement need not compile it


@dataclass(frozen=True)
class FinalTimes:
    """Interleaved times of the top trials, and of the baseline where the target can time it."""

    times: tuple[Measurement | None, ...]  # one per trial; None: the trial no longer works
    baseline: Baseline | None = None  # timed interleaved with the trials; None: not timed
    reason: str = ""  # why a trial or the baseline has no time; "" where all were timed


class AbstractBench(abc.ABC):
    """Takes candidates, returns their records in the order in which the candidates were started.

    Each session of a run builds a bench in the tuner's own process, and ``tuner check`` builds one for its
    script. The thread that built the bench makes all calls: child processes die with that thread. In the
    life of a session::

        start(number, candidate, effort)   # each trial without a stored outcome, once its proposal is stored
        finish()                      # once for each start; up to workers + 1 are started and not finished
        finals(top_trials, effort)    # when every start is finished; by a run once, by a gate again and again
        close()                       # once, whatever happened before

    A candidate that crashes, hangs, is wrong or does not compile gives a record with a Failure; no exception
    is raised for it. ``start``, ``finish`` and ``finals`` raise TunerError where a child process cannot
    start, ``finish`` and ``finals`` KeyboardInterrupt while they wait; after either only ``close`` is called.
    """

    @abc.abstractmethod
    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Binds a candidate to its script and queues the script for compilation; does not wait.

        ``number`` is the trial's: the random inputs of the evaluation follow from ``number`` and the run's
        seed, whichever process evaluates. ``effort.stop_above_s`` follows from what was known when the trial
        was proposed.
        """

    @abc.abstractmethod
    def finish(self) -> BoundRecord:
        """Waits for the earliest started candidate that is not finished; returns its record and script."""

    @abc.abstractmethod
    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Final re-measurement: times the top trials again, interleaved, with the baseline where possible.

        A script without an artifact is compiled again; a trial that no longer works has None for a time.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends every process that the bench started."""
