"""The port of a search method: proposes rows of a feasible set, hears what became of them."""

import abc


class AbstractSampler(abc.ABC):
    """Chooses among the rows of a feasible set that it was built with (``0 .. rows - 1``).

    Each session of a run builds one in the tuner's own process; its loop, ``tuner.tuning.ask_tell``, makes
    all calls from one thread. In the life of a trial::

        row = ask(number)      # before the proposal is stored and started
        ...                    # asks of the next numbers, while at most workers + 1 rows are pending
        tell(row, seconds)     # once for each ask and in their order: of the row that is pending longest

    A session that goes on with a run calls ``replay(number, row)`` for ``ask(number)`` while there are stored
    trials, and tells their outcomes at the same places. What fails is told: no candidate makes a call raise.
    Whatever a sampler raises ends the session; what is stored stays.

    Contract, checked by one conformance suite over all samplers:
    a row is never proposed twice; ``ask`` returns None only when every row was proposed, and is asked again
    after each tell that is left; equal (seed, history of asks and tells) give equal proposals: randomness
    comes from ``np.random.default_rng((seed, number))`` alone, so a resumed run proposes what an unbroken one
    would. A pending row counts as slow (constant liar: Ginsbourger et al.,
    2010, https://doi.org/10.1007/978-3-642-10701-6_6).
    """

    @abc.abstractmethod
    def ask(self, number: int) -> int | None:
        """Returns the row to try as trial ``number`` (0, 1, ...), or None when none is left."""

    @abc.abstractmethod
    def tell(self, row: int, value: float | None) -> None:
        """Takes in the seconds of a pending row (smaller is better), or None for one that has no time.

        Raises ValueError for a row that is not pending: a defect of the caller.
        """

    @abc.abstractmethod
    def replay(self, number: int, row: int) -> None:
        """Takes in a proposal of an earlier session of the run, as if ``ask(number)`` had returned it.

        Raises ValueError for a row that there is not, or that was proposed before: a defect of the caller.
        """
