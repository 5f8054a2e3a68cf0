"""What rows of a search space cost by the models of processors and GPUs: knobs by their names -> tiles.

A strategy has a model when it has the knobs of one: ``tile_m tile_n block_k`` on a processor, ``block_m
block_n block_k`` with ``warps_m warps_n`` (tensor cores) or ``thread_m thread_n split_m split_n`` on a GPU.
Knobs beyond these are looked at where they are there.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Value
from tuner.core.chips import WARP_THREADS, chip_of
from tuner.core.kernel_program import Resources
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.cost_model import cpu as cpu_cost
from tuner.cost_model import gpu as gpu_cost
from tuner.cost_model.cpu import CpuTiles
from tuner.cost_model.gpu import GpuTiles
from tuner.cost_model.memory_path import WARP_BYTES, access_cycles, by_kind, stream_cycles
from tuner.space.row_keys import Indices
from tuner.space.search_space import SearchSpace

Counts = npt.NDArray[np.float64]

READS_B_IN_PLACE = ("matmul_cpu_direct",)
# Registers beside the sums, as ptxas reports of our kernels: benchmarks/results/sass_sm_90.json
TENSOR_REGISTERS = 36  # and two sets of fragments
COPY_BYTES = 16  # of a lane, by cp.async
PRODUCT = (16, 8, 32)  # rows and columns of C, and bytes of K, of one mma.sync
MATRICES_BYTES = 512  # that one ldmatrix.x4 reads
READ_WAIT = 33.0  # cycles until ldmatrix has read: arXiv 2206.02874; a load from shared memory, 24
LOAD_WAIT = 24.0
CUDA_CORE_REGISTERS = {4: 64, 8: 100}  # by the bytes of a sum


class KnobColumns:
    """The knobs of some rows by their names."""

    def __init__(self, space: SearchSpace, index: Indices) -> None:
        self._space = space
        self._index = index

    def __contains__(self, name: str) -> bool:
        return name in self._space.names

    def numbers(self, name: str, missing: float = 0.0) -> Counts:
        """Returns a knob's values; ``missing`` where the strategy does not have it."""
        if name not in self:
            return np.full(len(self._index), missing)
        place = self._space.names.index(name)
        return np.array(self._space.knobs[place].choices, np.float64)[self._index[:, place]]

    def sizes(self, name: str, whole: Counts) -> Counts:
        """Returns a block's extents: 0, or more than there is, is all of it."""
        values = self.numbers(name)
        return np.where(values == 0, whole, np.minimum(values, whole))

    def equal(self, name: str, value: Value) -> npt.NDArray[np.bool_]:
        """Tells where a knob has a value; nowhere when the strategy does not have it."""
        if name not in self:
            return np.zeros(len(self._index), bool)
        place = self._space.names.index(name)
        is_equal = np.array([choice == value for choice in self._space.knobs[place].choices])
        found: npt.NDArray[np.bool_] = is_equal[self._index[:, place]]
        return found


class AbstractModel(abc.ABC):
    """A strategy's rows as a model of the machine sees them. Final subclasses only."""

    shape: tuple[str, str]  # knobs that make schedules differ in kind

    def __init__(self, space: SearchSpace, problem: Problem, machine: Machine, threads: int) -> None:
        self.space = space
        self.problem = problem
        self.machine = machine
        self.threads = threads

    @abc.abstractmethod
    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        """Returns the cycles of the model by row; ``known`` is what ptxas told of some of them."""

    def shape_of(self, row: npt.NDArray[np.integer]) -> tuple[int, ...]:
        """Returns what tells a row's kind from others."""
        return tuple(int(row[self.space.names.index(name)]) for name in self.shape)


class CpuModel(AbstractModel):
    """Blocks, panels and register tiles of a processor."""

    shape = ("tile_m", "tile_n")

    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        columns = KnobColumns(self.space, index)
        m, n, k = (np.full(len(index), float(size)) for size in self.problem.sizes)
        m = np.where(columns.equal("split", "m"), np.ceil(m / self.threads), m)
        n = np.where(columns.equal("split", "n"), np.ceil(n / self.threads), n)
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
            is_packed=self.space.strategy not in READS_B_IN_PLACE,
        )
        return cpu_cost.cycles(tiles, self.problem, self.machine)


class TensorCoreModel(AbstractModel):
    """Warps that multiply fragments of shared tiles."""

    shape = ("block_m", "block_n")

    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        columns = KnobColumns(self.space, index)
        block_m, block_n = columns.numbers("block_m"), columns.numbers("block_n")
        warps_m, warps_n = columns.numbers("warps_m"), columns.numbers("warps_n")
        warps = warps_m * warps_n
        rows, columns_of_warp = block_m / warps_m, block_n / warps_n
        sums = rows * columns_of_warp / WARP_THREADS
        registers = sums + TENSOR_REGISTERS + (rows + columns_of_warp) / 2
        input_bytes, capability = self.problem.input_bytes, chip_of(self.machine.chip).capability
        step = PRODUCT[2] / input_bytes  # of K
        products = rows / PRODUCT[0] * columns_of_warp / PRODUCT[1] / step
        reads = (rows + columns_of_warp) * input_bytes / MATRICES_BYTES
        copies = (block_m + block_n) * input_bytes / (COPY_BYTES * WARP_THREADS) / warps
        # rows are swizzled or padded: no bank is asked twice
        memory = reads * MATRICES_BYTES / WARP_BYTES
        memory = memory + copies * stream_cycles("store_shared", COPY_BYTES // 4, capability)
        waits = np.where(columns.numbers("prefetch") > 0, 0.0, READ_WAIT / step)
        path = SharedPath(products + reads + copies, memory, waits)
        return _gpu_costs(self, columns, warps * WARP_THREADS, registers, path, known)


class CudaCoreModel(AbstractModel):
    """Threads that multiply vectors of shared tiles."""

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
        """Counts reads of both tiles, by the lanes' addresses, and the copies that fill them."""
        capability = chip_of(self.machine.chip).capability
        words = max(1.0, self.problem.input_bytes / 4)  # of an element; narrower ones count as whole words
        unroll, block_k = columns.numbers("unroll_k", 1.0), columns.numbers("block_k")
        pad = columns.numbers("pad_bytes") / 4
        issued = columns.numbers("split_m") * columns.numbers("thread_m")
        issued = issued * columns.numbers("split_n") * columns.numbers("thread_n")
        memory = np.zeros(len(issued))
        for axis, is_row, is_along in (
            ("m", 1, self.problem.layout == "tn"),
            ("n", 0, self.problem.layout != "nt"),
        ):
            parts, own = columns.numbers(f"split_{axis}"), columns.numbers(f"thread_{axis}")
            vector = np.minimum(own if is_along else unroll, 4 / words)  # elements of one read
            stride = np.full(len(own), words) if is_along else block_k * words + pad
            read_cycles = by_kind(
                (wide, own * stride, vector * words),
                partial(_read_cycles, is_row=is_row, capability=capability),
            )
            reads = parts * own / vector  # for one step of K
            copied = columns.numbers(f"vector_{'a' if axis == 'm' else 'b'}", 4 / words)
            copies = columns.numbers(f"block_{axis}") / copied / threads
            copy_cycles = by_kind((copied * words,), partial(_copy_cycles, capability=capability))
            issued = issued + reads + copies
            memory = memory + reads * read_cycles + copies * copy_cycles
        return SharedPath(issued, memory, LOAD_WAIT / unroll)


def _read_cycles(wide: int, stride: int, width: int, *, is_row: int, capability: int) -> float:
    """Returns the cycles of a read; words of neighbours in a row, or down a column, are ``stride`` apart."""
    lanes = np.arange(WARP_THREADS)
    places = lanes // max(wide, 1) if is_row else lanes % max(wide, 1)
    return access_cycles("load_shared", places * stride, width, capability)


def _copy_cycles(width: int, *, capability: int) -> float:
    return stream_cycles("store_shared", width, capability)


@dataclass(frozen=True)
class SharedPath:
    """What a warp does for one step of K, see ``GpuTiles``."""

    issued: Counts
    memory: Counts
    waits: Counts


MODELS: tuple[tuple[frozenset[str], bool, type[AbstractModel]], ...] = (  # (knobs, is of a GPU, model)
    (frozenset({"tile_m", "tile_n", "block_k"}), False, CpuModel),
    (frozenset({"block_m", "block_n", "block_k", "warps_m", "warps_n"}), True, TensorCoreModel),
    (
        frozenset({"block_m", "block_n", "block_k", "thread_m", "thread_n", "split_m", "split_n"}),
        True,
        CudaCoreModel,
    ),
)


def model_of(space: SearchSpace, problem: Problem, machine: Machine, threads: int) -> AbstractModel | None:
    """Returns the model of a strategy; None where its knobs are those of none, or texts."""
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
    block_m, block_n, block_k = (columns.numbers(name) for name in ("block_m", "block_n", "block_k"))
    depth = columns.numbers("depth")
    shared = (
        (depth + 1) * (block_m + block_n) * (block_k * problem.input_bytes + columns.numbers("pad_bytes"))
    )
    for row, each in known.items():
        registers[row] = each.registers
        shared[row] = each.static_shared_bytes + each.dynamic_shared_bytes
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
        splits=columns.numbers("splits", 1.0),
    )
    return gpu_cost.cycles(tiles, problem, chip_of(model.machine.chip), model.machine.physical_cores)
