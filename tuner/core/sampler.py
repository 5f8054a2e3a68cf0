"""The port of a search method (ask/tell): proposes configurations of a feasible set, receives their times.

A row is the index of a configuration in the feasible set.
"""

import abc


class AbstractSampler(abc.ABC):
    """Proposes configurations of a feasible set; ``row`` is a configuration's index, ``0 .. rows - 1``.

    Each session of a run builds a sampler in the tuner's process; the session's loop,
    ``tuner.tuning.ask_tell``, makes all calls from one thread. In the life of a trial::

        row = ask(number)      # before the proposal is stored and started
        ...                    # asks of the next numbers, while at most workers + 1 rows are pending
        tell(row, seconds)     # once for each ask and in their order: of the row that is pending longest

    A session that resumes a run calls ``replay(number, row)`` in place of ``ask(number)`` while there are
    stored trials, and ``tell`` with their outcomes in the same places. A failed trial is reported by ``tell``
    with None: no candidate makes a call raise. What a sampler raises ends the session; stored trials stay.

    Contract, checked by one conformance suite over all samplers: a row is never proposed twice; ``ask``
    returns None only when every row was proposed, and the session still calls it after each remaining
    ``tell``; equal seeds and equal histories of asks and tells give equal proposals: randomness comes from
    ``np.random.default_rng((seed, number))`` alone, so a resumed run proposes what an uninterrupted run
    would. A pending row counts as slow (constant liar: Ginsbourger et al., 2010,
    https://doi.org/10.1007/978-3-642-10701-6_6).
    """

    @abc.abstractmethod
    def ask(self, number: int) -> int | None:
        """Returns the configuration to try as trial ``number``, by its index in the feasible set.

        ``number`` is 0, 1, ... in the order of calls. None when every configuration was proposed.
        """

    @abc.abstractmethod
    def tell(self, row: int, value: float | None) -> None:
        """Takes the outcome of a pending configuration: ``value`` in seconds per call, None for no time.

        ``row`` is its index in the feasible set. Raises ValueError for a row that is not pending: a defect of
        the caller.
        """

    @abc.abstractmethod
    def replay(self, number: int, row: int) -> None:
        """Repeats a proposal of an earlier session of the run, as if ``ask(number)`` had returned ``row``.

        ``row`` is the index of a configuration in the feasible set. Raises ValueError for a row outside of
        the set, or one proposed before: a defect of the caller.
        """
