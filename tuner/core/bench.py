"""The port of the place where candidates are compiled, judged and timed."""

import abc
from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.record import Measurement, Record
from tuner.core.runs import Baseline
from tuner.core.target import Artifact, Effort, Script


@dataclass(frozen=True)
class BoundRecord:
    """A record with the script that its candidate was bound to, so that nobody binds it again."""

    record: Record
    script: Script  # empty where binding failed
    artifact: Artifact | None = None  # of the script, where it is at hand; finals do not compile it again


@dataclass(frozen=True)
class FinalTimes:
    """Times of those that took turns."""

    times: tuple[Measurement | None, ...]  # None: no longer works
    baseline: Baseline | None = None  # the baseline, where it took turns with them
    reason: str = ""  # why something has no time; "" where all that was asked for was timed


class AbstractBench(abc.ABC):
    """Takes candidates in, gives records out, in the order they were started.

    Each session of a run builds one in the tuner's own process, and ``tuner check`` one for its script. The
    thread that built it makes all calls: child processes die with it. In the life of a session::

        start(number, candidate, effort)   # each trial without a stored outcome, once its proposal is stored
        finish()                      # once for each start; up to workers + 1 are started and not finished
        finals(finalists, effort)     # when every start is finished; by a run once, by a gate again and again
        close()                       # once, whatever happened before

    A candidate that crashes, hangs, is wrong or does not compile gives a record with a Failure; nothing of
    that is raised. ``start``, ``finish`` and ``finals`` raise TunerError where a child process cannot start,
    ``finish`` and ``finals`` KeyboardInterrupt while they wait; after either only ``close`` is called.
    """

    @abc.abstractmethod
    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Binds a candidate to its script and queues that; does not wait for a compiler.

        The number is the trial's: what is random in judging follows from it and the run's seed, whichever
        process judges. ``effort.stop_above_s`` follows from what was known when the trial was proposed.
        """

    @abc.abstractmethod
    def finish(self) -> BoundRecord:
        """Waits for the candidate started first among those not finished; returns its record and script."""

    @abc.abstractmethod
    def finals(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times earlier winners again, interleaved, with the baseline where the target can.

        Scripts that come without code are compiled again; one that no longer works has None for a time.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends every process that the bench started."""
