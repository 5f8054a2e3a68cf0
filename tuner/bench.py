"""The port of the place where candidates are compiled, judged and timed."""

import abc
from dataclasses import dataclass

from tuner.record import Measurement, Record
from tuner.runs import Vendor
from tuner.space import Candidate
from tuner.target import Effort


@dataclass(frozen=True)
class FinalTimes:
    """Times of those that took turns."""

    times: tuple[Measurement | None, ...]  # None: no longer works
    vendor: Vendor | None = None  # the vendor library, where it took turns with them


class AbstractBench(abc.ABC):
    """Takes candidates in, gives records out, in the order they were started.

    A candidate that crashes, hangs, is wrong or does not compile gives a record with a Failure.
    """

    @abc.abstractmethod
    def start(self, candidate: Candidate) -> None:
        """Begins the work on a candidate and returns at once."""

    @abc.abstractmethod
    def finish(self, effort: Effort) -> Record:
        """Waits for the candidate started first among those not finished; returns its record."""

    @abc.abstractmethod
    def finals(self, records: tuple[Record, ...], effort: Effort) -> FinalTimes:
        """Times earlier winners again, interleaved, with the vendor library where the target can."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends every process that the bench started."""
