"""The port of the place where candidates are compiled, judged and timed."""

import abc

from tuner.record import Measurement, Record
from tuner.space import Candidate
from tuner.target import Effort


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
    def finals(self, records: tuple[Record, ...], effort: Effort) -> tuple[Measurement | None, ...]:
        """Times earlier winners again, interleaved; None for one that no longer works."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends every process that the bench started."""
