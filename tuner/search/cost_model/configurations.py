"""Cost models of strategies, applied to configurations of a search space, and the first ones to try."""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate, Value
from tuner.core.compiled_code import Resources
from tuner.core.gpu import WARP_THREADS, chip_of
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.search.cost_model import cpu, gpu
from tuner.search.cost_model.cpu import CpuTiles
from tuner.search.cost_model.gpu import GpuTiles, by_kind
from tuner.search.cost_model.shared_memory import WARP_BYTES, access_cycles, stream_cycles
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
# Registers in addition to the accumulators, as ptxas reports for tuner's kernels:
# benchmarks/results/sass_sm_90.json
TENSOR_REGISTERS = 36  # without the two sets of fragments
COPY_BYTES = 16  # per lane and cp.async
PRODUCT = (16, 8, 32)  # of one mma.sync: rows of C, columns of C, bytes along K
MATRICES_BYTES = 512  # read by one ldmatrix.x4
READ_WAIT = 33.0  # latency of ldmatrix in cycles: arXiv 2206.02874; of ld.shared: 24
LOAD_WAIT = 24.0
CUDA_CORE_REGISTERS = {4: 64, 8: 100}  # bytes of an element of C -> registers
SEEDS = 4  # per strategy, all of different shapes
WORTH = 1.5  # times the minimum cost of a strategy: a configuration above is not a seed
BLOCK_ROWS = 1 << 18  # configurations evaluated per batch
KEPT_ROWS = 1 << 12  # cheapest configurations kept per batch


class KnobColumns:
    """The values of each knob, per configuration; ``index``: positions among the knob's choices."""

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

        0 stands for all.
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


class TensorCoreModel(AbstractModel):
    """The cost model of GPU strategies in which warps multiply tiles in shared memory on tensor cores."""

    shape = ("block_m", "block_n")

    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        columns = KnobColumns(self.space, index)
        block_m = columns.numbers("block_m")
        block_n = columns.numbers("block_n")
        warps_m = columns.numbers("warps_m")
        warps_n = columns.numbers("warps_n")
        warps = warps_m * warps_n
        rows = block_m / warps_m
        columns_of_warp = block_n / warps_n
        sums = rows * columns_of_warp / WARP_THREADS
        registers = sums + TENSOR_REGISTERS + (rows + columns_of_warp) / 2
        input_bytes = self.problem.input_bytes
        capability = chip_of(self.machine.chip).capability
        step = PRODUCT[2] / input_bytes  # of K
        products = rows / PRODUCT[0] * columns_of_warp / PRODUCT[1] / step
        reads = (rows + columns_of_warp) * input_bytes / MATRICES_BYTES
        copies = (block_m + block_n) * input_bytes / (COPY_BYTES * WARP_THREADS) / warps
        # rows are swizzled or padded: no bank conflicts
        memory = reads * MATRICES_BYTES / WARP_BYTES
        memory = memory + copies * stream_cycles("store_shared", COPY_BYTES // 4, capability)
        waits = np.where(columns.numbers("prefetch") > 0, 0.0, READ_WAIT / step)
        path = SharedPath(products + reads + copies, memory, waits)
        return _gpu_costs(self, columns, warps * WARP_THREADS, registers, path, known)


class CudaCoreModel(AbstractModel):
    """The cost model of GPU strategies in which threads multiply tiles in shared memory by FMA."""

    shape = ("block_m", "block_n")

    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        columns = KnobColumns(self.space, index)
        output_bytes = self.problem.output_bytes
        rows = columns.numbers("split_m") * columns.numbers("thread_m")
        across = columns.numbers("split_n") * columns.numbers("thread_n")
        wide = columns.numbers("block_n") / across  # threads along n
        threads = columns.numbers("block_m") / rows * wide
        registers = rows * across * output_bytes / 4 + CUDA_CORE_REGISTERS[output_bytes]
        return _gpu_costs(self, columns, threads, registers, self._path(columns, wide, threads), known)

    def _path(self, columns: KnobColumns, wide: Counts, threads: Counts) -> "SharedPath":
        capability = chip_of(self.machine.chip).capability
        words = max(1.0, self.problem.input_bytes / 4)  # of an element; narrower elements count as one word
        unroll = columns.numbers("unroll_k", 1.0)
        block_k = columns.numbers("block_k")
        pad = columns.numbers("pad_bytes") / 4
        issued = columns.numbers("split_m") * columns.numbers("thread_m")
        issued = issued * columns.numbers("split_n") * columns.numbers("thread_n")
        memory = np.zeros(len(issued))
        # is_row: what a thread reads depends on its row among the block's threads, not on its column;
        # is_along: elements next to each other in shared memory are neighbours along the axis, not along K
        for axis, is_row, is_along in (
            ("m", True, self.problem.layout == "tn"),
            ("n", False, self.problem.layout != "nt"),
        ):
            parts = columns.numbers(f"split_{axis}")
            own = columns.numbers(f"thread_{axis}")
            vector = np.minimum(own if is_along else unroll, 4 / words)  # elements of one read
            stride = np.full(len(own), words) if is_along else block_k * words + pad
            read_cycles = by_kind(
                (wide, own * stride, vector * words),
                partial(_read_cycles, is_row=is_row, capability=capability),
            )
            reads = parts * own / vector  # for one step of K
            copied = columns.numbers(f"vector_{'a' if axis == 'm' else 'b'}", 4 / words)
            copies = columns.numbers(f"block_{axis}") / copied / threads
            copy_cycles = by_kind(
                (copied * words,), lambda width: stream_cycles("store_shared", width, capability)
            )
            issued = issued + reads + copies
            memory = memory + reads * read_cycles + copies * copy_cycles
        return SharedPath(issued, memory, LOAD_WAIT / unroll)


def _read_cycles(wide: int, stride: int, width: int, *, is_row: bool, capability: int) -> float:
    lanes = np.arange(WARP_THREADS)
    threads = lanes // max(wide, 1) if is_row else lanes % max(wide, 1)
    return access_cycles("load_shared", threads * stride, width, capability)


@dataclass(frozen=True)
class SharedPath:
    """The costs of a warp per index of K: arrays with one entry per configuration.

    Instructions issued, cycles of the path to shared memory, and cycles of waiting for shared memory.
    """

    issued: Counts
    memory: Counts
    waits: Counts


MODELS: tuple[tuple[frozenset[str], bool, type[AbstractModel]], ...] = (  # (knobs, for GPUs, model)
    (frozenset({"tile_m", "tile_n", "block_k"}), False, CpuModel),
    (frozenset({"block_m", "block_n", "block_k", "warps_m", "warps_n"}), True, TensorCoreModel),
    (
        frozenset({"block_m", "block_n", "block_k", "thread_m", "thread_n", "split_m", "split_n"}),
        True,
        CudaCoreModel,
    ),
)


def model_of(space: SearchSpace, problem: Problem, machine: Machine, threads: int) -> AbstractModel | None:
    """Returns the cost model for the strategy of ``space`` on a machine; None if no model knows its knobs."""
    for names, is_gpu, model in MODELS:
        numeric = {knob.name for knob in space.knobs if not knob.is_text}
        if is_gpu == bool(machine.chip) and names <= numeric:
            return model(space, problem, machine, threads)
    return None


def _gpu_costs(
    model: AbstractModel,
    columns: KnobColumns,
    threads: Counts,
    registers: Counts,
    path: SharedPath,
    known: Mapping[int, Resources],
) -> Counts:
    problem = model.problem
    block_m, block_n, block_k = map(columns.numbers, ("block_m", "block_n", "block_k"))
    depth = columns.numbers("depth")
    shared = (
        (depth + 1) * (block_m + block_n) * (block_k * problem.input_bytes + columns.numbers("pad_bytes"))
    )
    for row, report in known.items():
        registers[row] = report.registers
        shared[row] = report.static_shared_bytes + report.dynamic_shared_bytes
    splits = columns.numbers("splits", 1.0)
    adds_by_kernel = (splits > 1) & ~columns.equal("split_by", "last_block")
    tiles = GpuTiles(
        block_m=block_m,
        block_n=block_n,
        block_k=block_k,
        threads=threads,
        registers=np.ceil(registers),
        shared_bytes=shared,
        issued=path.issued,
        memory=path.memory,
        waits=path.waits,
        depth=depth,
        splits=splits,
        more_launches=adds_by_kernel.astype(np.float64),
    )
    return gpu.cycles(tiles, problem, chip_of(model.machine.chip), model.machine.physical_cores)


# Initial configurations of a search: what the cost model ranks first, before anything was measured.
# Processors: register tiles that keep the FMA units busy, packed panels that fit the caches
# (``tuner.search.cost_model.cpu``). GPUs: grids that fill whole waves of multiprocessors with enough warps,
# and the roofline of one multiprocessor (``tuner.search.cost_model.gpu``).


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
    compiled = ((part.row_of(candidate), report) for candidate, report in (resources or {}).items())
    known = {row: report for row, report in compiled if row is not None}
    seeds: list[tuple[float, int]] = []
    start = 0
    for space, index in zip(part.spaces, part.index, strict=True):
        model = model_of(space, problem, machine, threads)
        if model is not None and len(index):
            own = {row - start: report for row, report in known.items() if start <= row < start + len(index)}
            seeds += [(cost, start + row) for cost, row in _chosen(model, index, own)]
        start += len(index)
    return tuple(int(rows[seed]) for _, seed in sorted(seeds))


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
        part = {row - first: report for row, report in known.items() if first <= row < first + BLOCK_ROWS}
        cost = model.costs(index[first : first + BLOCK_ROWS], part)
        cost[[row for row, report in part.items() if report.spilled_bytes]] = (
            np.inf
        )  # the model counts no spills
        rows = np.argsort(cost, kind="stable")[:KEPT_ROWS]
        rows = rows[np.isfinite(cost[rows])]
        kept_rows.append(rows + first)
        kept_costs.append(cost[rows])
    rows = np.concatenate(kept_rows)
    cost = np.concatenate(kept_costs)
    order = np.lexsort((rows, cost))
    return rows[order], cost[order]
