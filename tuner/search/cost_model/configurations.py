"""Cost models of strategies, applied to configurations of a search space, and the first ones to try.

``KnobColumns`` gives the knobs of many configurations as arrays, ``AbstractModel`` the costs. ``model_of``
finds the model by a strategy's knobs; ``initial_configurations`` picks the least costs with different tile
shapes.
"""

import abc
from collections.abc import Mapping
from pkgutil import resolve_name

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate, Value
from tuner.core.compiled_code import Resources
from tuner.core.machine import PTX, Machine
from tuner.core.problem import Problem
from tuner.search.cost_model import cpu
from tuner.search.cost_model.cpu import CpuTiles
from tuner.space.enumeration import Indices
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import SearchSpace

# Model costs of configurations of a search space: knobs by name -> tiles -> cycles.
# A strategy has a model where its numeric knobs include the names of that model: ``tile_m tile_n block_k`` on
# a processor, ``block_m block_n block_k`` with ``warps_m warps_n`` (tensor cores) or ``thread_m thread_n
# split_m split_n`` on a GPU. Further knobs, such as ``unroll_k`` or ``depth``, are used where the strategy
# has them.

Counts = npt.NDArray[np.float64]
READS_B_IN_PLACE = ("matmul_cpu_direct",)
SEEDS = 4  # per strategy, all of different shapes
WORTH = 1.5  # times the minimum cost of a strategy: a configuration above is not a seed
BLOCK_ROWS = 1 << 18  # configurations evaluated per batch
KEPT_ROWS = 1 << 12  # cheapest configurations kept per batch


class KnobColumns:
    """The values of each knob, per configuration; ``index``: choice indices [configuration, knob]."""

    def __init__(self, space: SearchSpace, index: Indices) -> None:
        self._space = space
        self._index = index

    def __contains__(self, name: str) -> bool:
        return name in self._space.names

    def numbers(self, name: str, missing: float = 0.0) -> Counts:
        """Returns a numeric knob's value per configuration; ``missing`` if the strategy has no such knob."""
        if name not in self:
            return np.full(len(self._index), missing)
        knob = self._space.names.index(name)
        return np.array(self._space.knobs[knob].choices, np.float64)[self._index[:, knob]]

    def sizes(self, name: str, whole: Counts) -> Counts:
        """Returns the block size per configuration, from the knob ``name``: at most ``whole``.

        A knob value of 0 stands for ``whole``.
        """
        values = self.numbers(name)
        return np.where(values == 0, whole, np.minimum(values, whole))

    def equal(self, name: str, value: Value) -> npt.NDArray[np.bool_]:
        if name not in self:
            return np.zeros(len(self._index), bool)
        knob = self._space.names.index(name)
        is_equal = np.array([choice == value for choice in self._space.knobs[knob].choices])
        result: npt.NDArray[np.bool_] = is_equal[self._index[:, knob]]
        return result


class AbstractModel(abc.ABC):
    """A cost model of the configurations of one strategy on one machine; its subclasses are final."""

    shape: tuple[str, str]  # knobs whose values define the shape class of a schedule

    def __init__(self, space: SearchSpace, problem: Problem, machine: Machine, threads: int) -> None:
        self.space = space
        self.problem = problem
        self.machine = machine
        self.threads = threads

    @abc.abstractmethod
    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        """Returns the estimated cycles of each configuration; inf for one that cannot be launched.

        ``index``: choice indices (configurations, knobs); ``known``: position of a configuration -> ptxas's
        report on its kernel.
        """

    def shape_of(self, row: npt.NDArray[np.integer]) -> tuple[int, ...]:
        """Returns the choice indices of the two knobs named ``shape``, of one configuration.

        ``row``: the choice indices of all knobs.
        """
        return tuple(int(row[self.space.names.index(name)]) for name in self.shape)


class CpuModel(AbstractModel):
    """The cost model of CPU strategies with cache blocks, packed panels and register tiles."""

    shape = ("tile_m", "tile_n")

    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        columns = KnobColumns(self.space, index)
        reads_in_place = self.space.strategy in READS_B_IN_PLACE
        m, n, k = (np.full(len(index), float(size)) for size in self.problem.sizes)
        m = np.where(columns.equal("split", "m"), np.ceil(m / self.threads), m)
        n = np.where(columns.equal("split", "n"), np.ceil(n / self.threads), n)
        lanes = self.machine.vector_bytes // self.problem.accumulator_bytes
        n = np.where(
            columns.equal("lanes_along_k", 1), n - n % lanes, n
        )  # the others take a share of a register tile
        tiles = CpuTiles(
            tile_m=columns.numbers("tile_m"),
            tile_n=columns.numbers("tile_n"),
            unroll_k=columns.numbers("unroll_k", 1.0),
            block_m=columns.sizes("block_m", m),
            block_n=columns.sizes("block_n", n),
            block_k=columns.sizes("block_k", k),
            is_row_major=columns.equal("loop_order", "ij"),
            m=m,
            n=n,
            packs_a=columns.equal("pack_a", 1),
            is_packed=not reads_in_place,
            fetches_b=(columns.numbers("prefetch", 0.0) > 0) & reads_in_place,
        )
        return cpu.cycles(tiles, self.problem, self.machine)


PROCESSORS = ""  # in place of an isa: all processors
# Models of strategies: (knobs, ``Machine.isa``, "module:class"). A class is imported when it is used.
MODELS: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"tile_m", "tile_n", "block_k"}),
        PROCESSORS,
        "tuner.search.cost_model.configurations:CpuModel",
    ),
    (
        frozenset({"block_m", "block_n", "block_k", "warps_m", "warps_n"}),
        PTX,
        "tuner.gpu.cost_model.gpu:TensorCoreModel",
    ),
    (
        frozenset({"block_m", "block_n", "block_k", "thread_m", "thread_n", "split_m", "split_n"}),
        PTX,
        "tuner.gpu.cost_model.gpu:CudaCoreModel",
    ),
)


def model_of(space: SearchSpace, problem: Problem, machine: Machine, threads: int) -> AbstractModel | None:
    """Returns the cost model for the strategy of ``space`` on a machine; None if no model knows its knobs."""
    isa = machine.isa if machine.chip else PROCESSORS
    numeric = {knob.name for knob in space.knobs if not knob.is_text}
    for names, model_isa, place in MODELS:
        if isa == model_isa and names <= numeric:
            model: AbstractModel = resolve_name(place)(space, problem.scheduled_as, machine, threads)
            return model
    return None


# Initial configurations of a search: what the cost model ranks first, before anything was measured.
# Processors: register tiles that keep the FMA units busy, packed panels that fit the caches
# (``tuner.search.cost_model.cpu``). GPUs: grids that fill whole waves of multiprocessors with enough warps,
# and the roofline of one multiprocessor (``tuner.gpu.cost_model.gpu``).


def initial_configurations(
    feasible: FeasibleSet,
    problem: Problem,
    machine: Machine,
    threads: int,
    resources: Mapping[Candidate, Resources] | None = None,  # of candidates that ptxas has compiled
) -> tuple[int, ...]:
    """Returns the indices in ``feasible`` of the configurations to try first, in order of estimated cost.

    At most 4 per strategy with a cost model, with different tile shapes, and at most 1.5 times the strategy's
    least cost. Left out are configurations that break a preference, or that spilled registers when they were
    compiled before (``resources``).
    """
    rows = np.flatnonzero(feasible.is_preferred)
    part = feasible.part(feasible.is_preferred)
    known: dict[int, Resources] = {}
    for candidate, report in (resources or {}).items():
        row = part.row_of(candidate)
        if row is not None:
            known[row] = report
    seeds: list[tuple[float, int]] = []
    start = 0
    for space, index in zip(part.spaces, part.index, strict=True):
        model = model_of(space, problem, machine, threads)
        if model is not None and len(index):
            own = _of_rows(known, start, len(index))
            seeds += [(cost, start + row) for cost, row in _chosen(model, index, own)]
        start += len(index)
    return tuple(int(rows[seed]) for _, seed in sorted(seeds))


def _of_rows(known: Mapping[int, Resources], first: int, count: int) -> dict[int, Resources]:
    """Returns the reports of ``count`` configurations from ``first`` on; the keys count from ``first``."""
    return {row - first: report for row, report in known.items() if first <= row < first + count}


def _chosen(model: AbstractModel, index: Indices, known: Mapping[int, Resources]) -> list[tuple[float, int]]:
    rows, cost = _cheapest(model, index, known)
    is_worth = cost <= WORTH * cost.min(initial=np.inf)
    chosen: dict[tuple[int, ...], tuple[float, int]] = {}
    for row, cycles in zip(rows[is_worth].tolist(), cost[is_worth].tolist(), strict=True):
        chosen.setdefault(model.shape_of(index[row]), (cycles, row))
        if len(chosen) == SEEDS:
            break
    return list(chosen.values())


def _cheapest(
    model: AbstractModel, index: Indices, known: Mapping[int, Resources]
) -> tuple[npt.NDArray[np.int64], Counts]:
    kept_rows = []
    kept_costs = []
    for first in range(0, len(index), BLOCK_ROWS):
        part = _of_rows(known, first, BLOCK_ROWS)
        cost = model.costs(index[first : first + BLOCK_ROWS], part)
        # the model counts no spills
        cost[[row for row, report in part.items() if report.spilled_bytes]] = np.inf
        rows = np.argsort(cost, kind="stable")[:KEPT_ROWS]
        rows = rows[np.isfinite(cost[rows])]
        kept_rows.append(rows + first)
        kept_costs.append(cost[rows])
    rows = np.concatenate(kept_rows)
    cost = np.concatenate(kept_costs)
    order = np.lexsort((rows, cost))
    return rows[order], cost[order]
