"""One quantized matmul by a tuned kernel and by libraries: times, interleaved, and errors."""

import statistics
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import quantized_rivals
from benchmarks.quantized_rivals import RIVALS, ZENTORCH
from tuner.analysis.ratios import median_interval, paired_ratio
from tuner.core.errors import TunerError
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import DTYPES
from tuner.core.packings import WeightPacking
from tuner.core.problem import Problem
from tuner.core.quantization import WeightFormat
from tuner.models.quantized.quantized_baselines import (
    BUILDERS,
    BaselineOperands,
    QuantizedMatmul,
    copies_needed,
)
from tuner.payload.packed_weights import packed
from tuner.runtime.cpu.host import describe_machine, processors
from tuner.runtime.cpu.memory import placed_copy, placed_empty
from tuner.runtime.cpu.roofline import MemoryReads
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.timing import Call, interleaved_times
from tuner.targets.cpu.baseline_libraries import BEST, chosen_libraries
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

Floats = npt.NDArray[np.float32]
OURS, READS = "tuner", "reads"
READ_BYTES = 128 * 2**20  # of the loop that measures bytes/s in each round
WEIGHT_OUTLIERS, ROW_OUTLIERS = (0.002, 7.0), (0.003, 15.0)  # shares, factors
BY_CHANNEL = "i8-channel-f16-a8row"  # zentorch's only i8: compared with i8 of any group


def measured(problem: Problem, script: str, threads: int, seconds: float, seed: int) -> dict[str, Any]:
    """Returns times, ratios and errors of one problem: a row of the document, less its name."""
    rng, copies = np.random.default_rng(seed), copies_needed(problem, describe_machine().l3_bytes)
    columns, a = _gaussian_weights(problem, rng), _gaussian_rows(problem, rng)
    operands = quantized(problem, columns, a)
    exact = a.astype(np.float32) @ columns.T
    reads = MemoryReads(ThreadTeam(threads), READ_BYTES)
    ours = OurMatmul(problem, script, threads, operands, copies)
    calls: dict[str, Call] = {OURS: ours.run, READS: partial(reads.repeat, 1)}
    errors = {OURS: _errors(ours.result, operands.product(), exact)}
    counts, failures = {OURS: ours.copies, READS: 1}, {}
    for library, rival in _rivals(problem):
        weights = operands if rival == problem else quantized(rival, columns, a)
        try:
            build = BUILDERS.get(library) or quantized_rivals.BUILDERS[library]
            matmul = QuantizedMatmul(build, rival, weights, threads, copies)
            matmul.require_right()
        except TunerError as error:
            failures[library] = str(error)
            continue
        name = f"{matmul.name}, weights by channel" if rival != problem else matmul.name
        calls[name], counts[name] = matmul.run, copies
        errors[name] = _errors(matmul.result, weights.product(), exact)
    passes = interleaved_times(calls, seconds)
    times = {name: [each / counts[name] for each in found] for name, found in passes.items()}
    return _row(problem, times, reads.bytes) | {"errors": errors, "failures": failures, "copies": copies}


def _row(problem: Problem, times: dict[str, list[float]], read_bytes: int) -> dict[str, Any]:
    bytes_per_s = read_bytes / statistics.median(times.pop(READS))
    medians = {name: median_interval(found) for name, found in times.items()}
    rivals = [name for name in times if name != OURS]
    best = min(rivals, key=lambda name: medians[name].median, default="")
    ours_s = medians[OURS].median
    moved = WeightFormat.of_text(problem.weights).weight_bytes(*problem.sizes[1:])
    return {
        "microseconds": {
            name: {part: value * 1e6 for part, value in asdict(found).items()}
            for name, found in medians.items()
        },
        "rounds": len(times[OURS]),
        "best": best,
        "ratio": asdict(paired_ratio(times[best], times[OURS])) if best else None,
        "ratios": {name: asdict(paired_ratio(times[name], times[OURS])) for name in rivals},
        "gb_per_s": moved / ours_s / 1e9,
        "read_gb_per_s": bytes_per_s / 1e9,
        "share_of_read": moved / ours_s / bytes_per_s,
        "gflop_per_s": problem.flop / ours_s / 1e9,
    }


def _rivals(problem: Problem) -> list[tuple[str, Problem]]:
    """Returns the installed libraries that take a problem, with the problem; zentorch's i8 is by channel."""
    found = [(name, problem) for name in (*chosen_libraries(BEST, problem), *_more_rivals(problem))]
    if problem.weights.startswith("i8-g") and "a8" in problem.weights:
        m, n, k = problem.sizes
        other = Matmul(m, n, k, problem.dtype, "nt", weights=BY_CHANNEL, cache=problem.cache)
        found += [(name, other) for name in _more_rivals(other) if name == ZENTORCH]
    return found


def _more_rivals(problem: Problem) -> list[str]:
    return [name for name, rival in RIVALS.items() if rival.multiplies(problem) and rival.find()]


class OurMatmul:
    """A tuned kernel with copies of its packed weights, called from compiled code in turn."""

    def __init__(
        self, problem: Problem, script: str, threads: int, operands: BaselineOperands, copies: int
    ) -> None:
        """Compiles the script and packs the weights; ``copies`` is rounded up to a power of two."""
        loaded = CpuEvaluator(threads).load(problem, CpuCompiler().compile(problem, Script.of(script)))
        self.copies = 1 << (copies - 1).bit_length()
        self.result = placed_empty(problem.c_shape, np.dtype(np.float32))
        a, weights = placed_copy(operands.a), (operands.integers, operands.scales)
        first = [_packed(*each) for each in zip(weights, loaded.packings[1:], strict=True)]
        blocks = [first, *([placed_copy(each) for each in first] for _ in range(self.copies - 1))]
        self._prepared = loaded.calls(*((a, *block, self.result) for block in blocks))
        threads = len(loaded.parts)
        self._team = ThreadTeam(threads)
        self._team.pin(processors(threads))
        self.run()

    def run(self) -> None:
        """Multiplies A by each copy."""
        self._team.repeat(self._prepared.calls, self.copies)


def _packed(weight: npt.NDArray[Any], packing: WeightPacking | None) -> npt.NDArray[Any]:
    return placed_copy(weight) if packing is None else packed(weight, packing, placed_empty)


def quantized(problem: Problem, columns: Floats, a: npt.NDArray[Any]) -> BaselineOperands:
    """Returns A and the weights (n, k) of a problem without zero points, rounded to the nearest integers."""
    weights = WeightFormat.of_text(problem.weights)
    n, k = columns.shape
    greatest = (1 << (weights.bits - 1)) - 1
    groups = columns.reshape(n, weights.groups(k), -1)
    scales = (np.abs(groups).max(axis=2) / greatest).astype(DTYPES[weights.scale_dtype])
    integers = np.rint(groups / scales.astype(np.float32)[..., None])
    clipped = np.clip(integers, -greatest - 1, greatest).astype(np.int8).reshape(n, k)
    return BaselineOperands(weights, a, clipped, scales)


def _gaussian_weights(problem: Problem, rng: np.random.Generator) -> Floats:
    _, n, k = problem.sizes
    share, factor = WEIGHT_OUTLIERS
    columns = rng.standard_normal((n, k), np.float32)
    columns[rng.random((n, k), np.float32) < share] *= factor
    return columns


def _gaussian_rows(problem: Problem, rng: np.random.Generator) -> npt.NDArray[Any]:
    m, _, k = problem.sizes
    share, factor = ROW_OUTLIERS
    rows = rng.standard_normal((m, k), np.float32)
    rows[:, rng.random(k) < share] *= factor
    return rows.astype(DTYPES[problem.dtype])


def _errors(result: npt.NDArray[Any], of_quantized: Floats, exact: Floats) -> dict[str, float]:
    """Returns relative Frobenius errors against the products of quantized and of unquantized weights."""
    return {
        name: float(np.linalg.norm(result - wanted) / np.linalg.norm(wanted))
        for name, wanted in (("quantized", of_quantized), ("unquantized", exact))
    }
