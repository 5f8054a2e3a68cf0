"""The port of a search method: proposes rows of a feasible set, hears what became of them."""

import abc


class AbstractSampler(abc.ABC):
    """Chooses among the rows of a feasible set that it was built with (``0 .. rows - 1``).

    Contract, checked by one conformance suite over all samplers:
    a row is never proposed twice; ``ask`` returns None only when every row was proposed;
    equal (seed, history of asks and tells) give equal proposals: randomness comes from
    ``np.random.default_rng((seed, number))`` alone, so a resumed run proposes what an unbroken one would.
    Several asks may be pending; a pending row counts as slow (constant liar).
    """

    @abc.abstractmethod
    def ask(self, number: int) -> int | None:
        """Returns the row to try as trial ``number`` (0, 1, ...), or None when none is left."""

    @abc.abstractmethod
    def tell(self, row: int, value: float | None) -> None:
        """Takes in the seconds of a row (smaller is better), or None for one that failed."""

    @abc.abstractmethod
    def replay(self, number: int, row: int) -> None:
        """Takes in a proposal of an earlier session of the run, as if ``ask(number)`` had returned it."""
