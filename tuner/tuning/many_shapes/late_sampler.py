"""A sampler that is built when it is first asked: most problems of a group never ask."""

from collections.abc import Callable

from tuner.core.sampler import AbstractSampler


class LateSampler(AbstractSampler):
    """A sampler of one problem of a group; keeps the outcomes until it has to propose something."""

    def __init__(self, make: Callable[[], AbstractSampler]) -> None:
        self._make = make
        self._sampler: AbstractSampler | None = None
        self._earlier: list[Callable[[AbstractSampler], None]] = []  # calls before the first question

    def ask(self, number: int) -> int | None:
        """Returns the row of trial ``number`` of the run; None: every row was proposed."""
        if self._sampler is None:
            self._sampler = self._make()
            for call in self._earlier:
                call(self._sampler)
            self._earlier.clear()
        return self._sampler.ask(number)

    def tell(self, row: int, value: float | None) -> None:
        """Passes a row's seconds per call, None for a failed or untimed trial, to the sampler."""
        self._call(lambda sampler: sampler.tell(row, value))

    def replay(self, number: int, row: int) -> None:
        """Makes the sampler record ``row`` as the proposal of trial ``number``."""
        self._call(lambda sampler: sampler.replay(number, row))

    def _call(self, call: Callable[[AbstractSampler], None]) -> None:
        if self._sampler is None:
            self._earlier.append(call)
        else:
            call(self._sampler)
