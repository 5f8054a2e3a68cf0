"""The port (abstract interface) that compiles, verifies and times candidates."""

import abc
from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.record import Measurement, Record
from tuner.core.runs import Baseline
from tuner.core.target import Artifact, Effort, Script


@dataclass(frozen=True)
class BoundRecord:
    """The result of one candidate: its record, its bound script, and its compiled artifact where kept."""

    record: Record
    script: Script  # empty where binding failed
    artifact: Artifact | None = None  # of the script, where kept: final re-measurement need not compile it


@dataclass(frozen=True)
class FinalTimes:
    """Times of the final re-measurement of a run: of its top trials, and of the baseline if it was timed.

    All were timed interleaved; ``times`` is in the order of the trials that were given.
    """

    times: tuple[Measurement | None, ...]  # one per trial; None: the trial no longer works
    baseline: Baseline | None = None  # timed interleaved with the trials; None: not timed
    reason: str = ""  # why a trial or the baseline has no time; "" where all were timed


class AbstractBench(abc.ABC):
    """Compiles, verifies and times candidates; returns records in the order in which candidates were started.

    Each session of a run builds a bench in the tuner's process, and ``tuner check`` builds one for its
    script. The thread that built the bench makes all calls: child processes die with that thread. In the life
    of a session::

        start(number, candidate, effort)   # each trial without a stored outcome, once its proposal is stored
        finish()                      # once for each start; up to workers + 1 are started and not finished
        remeasure(top_trials, effort) # when every start is finished; by a run once, by a gate repeatedly
        close()                       # once, whatever happened before

    A candidate that crashes, hangs, is wrong or does not compile gives a record with a Failure; no exception
    is raised for it. ``start``, ``finish`` and ``remeasure`` raise TunerError where a child process cannot
    start, ``finish`` and ``remeasure`` raise KeyboardInterrupt while they wait; after such an exception only
    ``close`` is called.
    """

    @abc.abstractmethod
    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Starts trial ``number``: binds its candidate to a script and queues the script for compilation.

        Does not wait; ``finish`` returns the result. The random inputs of the evaluation follow from
        ``number`` and the run's seed, whichever process evaluates. ``effort`` limits the timing; its
        ``stop_above_s`` follows from what was known when the trial was proposed.
        """

    @abc.abstractmethod
    def finish(self) -> BoundRecord:
        """Waits for the earliest started candidate that no ``finish`` has returned; returns its result."""

    @abc.abstractmethod
    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Final re-measurement: times the top trials again, interleaved, with the baseline where possible.

        Compiles a trial's script again where its artifact was not kept. In the result, a trial that no longer
        works has None in place of its time.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends every child process that the bench started. Work that is queued in a fleet continues."""
