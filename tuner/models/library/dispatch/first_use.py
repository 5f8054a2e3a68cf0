"""The first use of a shape: a few kernels are verified and timed with ``np.matmul``, once per machine.

The times are kept in files, so that later processes choose the same kernel without timing. A kernel is used
if it beats ``np.matmul`` by LEAST_GAIN.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import numpy as np
import threadpoolctl

from tuner.analysis.ratios import NotComparable, comparison
from tuner.core.candidate import Candidate, Seconds
from tuner.core.errors import CandidateError, Refusal, UsageError
from tuner.core.interfaces import Effort, Script
from tuner.core.problem import Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.problem_documents import PROBLEM
from tuner.core.records import Measurement
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability
from tuner.core.round_quality import Evidence, reliability_in_round, round_quality
from tuner.core.serialization import decode, encode, parsed, require_format, seconds_text
from tuner.core.text_files import replace_file
from tuner.payload.reference import Array
from tuner.runtime import timing
from tuner.runtime.cpu.memory import address_of, copy_on_small_pages, keep_freed_memory
from tuner.runtime.process_state import between_forks
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text, ignore_holder
from tuner.runtime.workers.processes import owned_lock_file
from tuner.targets.arrays import ProblemArrays
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.loaded_kernel import AddressCall, LoadedKernel
from tuner.targets.signature import KernelSignature
from tuner.tuning.remeasurement import noise_of
from tuner.tuning.rule import Configuration

log = logging.getLogger(__name__)

MatmulCall = Callable[[Array, Array, Array | None], Array]  # (a, b, out or None) -> the product
TUNED_DTYPES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
# What takes over for an array that a kernel cannot take: (a, b, out, reason) -> the product
Otherwise = Callable[[Array, Array, Array | None, str], Array]
MISALIGNED = "an array at an address that is not a multiple of {}"
NO_ARRAYS = "not two plain numpy arrays"
OUT = "out is read-only, not C-contiguous, of another type or shape, or shares memory with an input"
EFFORT = Effort(budget_s=0.15, min_samples=5, max_samples=25)  # of each; 0.75 s for five
DRAWS = 2  # inputs that each kernel is verified on; the second has the signs of the first flipped
SEED = 0
LEAST_GAIN = 0.02  # by which a kernel must beat the baseline: closer times change places from day to day
LOCK_LIMIT_S = 2.0  # one timing by another process takes less; a run takes the lock again and again
FORMAT: Final = "tuner-first-use"
VERSION: Final = 1
WAIT_LIMIT_S = 60.0  # for another process's first use of a shape, which takes some seconds
REPORTED_AFTER_S = 3.0
LOOK_AGAIN_S = 0.02
HOLDER_BYTES = 20  # of the decimal process id in a lock's file


def numpy_product(a: Array, b: Array, out: Array | None) -> Array:
    """Returns ``np.matmul(a, b)``, the baseline, in ``out`` if that is not None.

    Raises UsageError for what is not an array of numbers.
    """
    try:
        with between_forks():  # os.fork() waits: a child of a fork in here would inherit a locked BLAS
            product: Array = np.matmul(a, b) if out is None else np.matmul(a, b, out=out)
    except TypeError as error:
        raise UsageError(f"matmul: {' '.join(str(error).split())}") from error
    return product


def problem_of(a: Array, b: Array, align: str) -> Problem | Refusal:
    """Returns the problem of a product ``a @ b``, or in one line why no kernel can compute it.

    ``align``: multiple of bytes at which the arrays lie, or "any". Transposed views give the layouts "tn" and
    "nt".
    """
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        return Refusal(NO_ARRAYS)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in (*a.shape, *b.shape):
        return Refusal(f"shapes {a.shape} and {b.shape}")
    dtype = TUNED_DTYPES.get(a.dtype)
    if dtype is None or a.dtype != b.dtype:
        return Refusal(f"types {a.dtype} and {b.dtype}")
    layout = ""
    for matrix in (a, b):
        if matrix.flags.c_contiguous:
            layout += "n"
        else:
            layout += "t" if matrix.flags.f_contiguous else "?"
    if layout not in ("nn", "nt", "tn"):
        return Refusal("strides: not the layout nn, nt or tn")
    return MatmulProblem("matmul", (a.shape[0], b.shape[1], a.shape[1]), dtype, layout, align=align)


@final
class KernelCall:
    """A compiled kernel as a function of arrays of its problem's shapes, types and strides.

    For an ``out`` that the kernel cannot fill, and for misaligned arrays, it calls ``otherwise`` with the
    reason.
    """

    def __init__(self, problem: Problem, kernel: LoadedKernel, otherwise: Otherwise) -> None:
        self._otherwise = otherwise
        self._shape = problem.c_shape
        self._output = KernelSignature.of(problem).output
        self._mask = 0 if problem.align == "any" else int(problem.align) - 1
        self._call = AddressCall(kernel)

    def __call__(self, a: Array, b: Array, out: Array | None) -> Array:
        if out is None:
            result = np.empty(self._shape, self._output.dtype)
        elif (
            self._output.fits(out)
            and out.flags.writeable
            and not np.may_share_memory(out, a)
            and not np.may_share_memory(out, b)
        ):
            result = out
        else:
            return self._otherwise(a, b, out, OUT)
        at_a = address_of(a)
        at_b = address_of(b)
        at_c = address_of(result)
        if (at_a | at_b | at_c) & self._mask:
            return self._otherwise(a, b, out, MISALIGNED.format(self._mask + 1))
        self._call(at_a, at_b, at_c)
        return result


@final
class KernelLoader:
    """Compiles bound transform scripts for this processor, and loads them as functions of arrays."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._compiler = CpuCompiler()

    def loaded(self, problem: Problem, script_text: str, otherwise: Otherwise) -> KernelCall:
        """Compiles and loads a bound script for a problem. Raises CandidateError where a stage fails.

        ``otherwise``: what the kernel calls for arrays that it cannot take.
        """
        keep_freed_memory()  # results are allocated in each call
        with between_forks():  # os.fork() waits: a child of a fork in here would inherit locked LLVM state
            artifact = self._compiler.compile(problem, Script.of(script_text))
            kernel = CpuEvaluator(self._threads).load(problem, artifact)
        return KernelCall(problem, kernel, otherwise)


@dataclass(frozen=True)
class BoundCandidate:
    """A candidate, and the text of its transform script for one problem."""

    candidate: Candidate
    script_text: str


@dataclass(frozen=True)
class TimedConfiguration:
    """A configuration that was tried at first use: its time, or why it has none."""

    configuration: Configuration  # projected onto the problem
    median_s: Seconds | None
    failure: str = ""  # one line; "": it was timed


@dataclass(frozen=True)
class FirstUse:
    """Times of configurations and of ``np.matmul``, measured when a process first used a shape."""

    baseline: str  # name, version and threads
    baseline_s: Seconds
    timed: tuple[TimedConfiguration, ...]
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of the times
    no_ratio: str = ""  # why the best kernel's time must not be compared with the baseline's; "": it may

    def fastest(self, candidates: tuple[Candidate, ...]) -> Candidate | None:
        """Returns the fastest of ``candidates`` if it beats the baseline by LEAST_GAIN; else None.

        Compares medians of interleaved times, also on a disturbed machine.
        """
        times = {tried.configuration.candidate: tried.median_s for tried in self.timed}
        known = {tried: time for tried in candidates if (time := times.get(tried)) is not None}
        best = min(known, key=lambda candidate: known[candidate], default=None)
        if best is not None and known[best] < self.baseline_s * (1 - LEAST_GAIN):
            return best
        return None

    @property
    def why_baseline(self) -> str:
        """Returns in one line why ``np.matmul`` is used: why each configuration failed, or the times."""
        times = [tried.median_s for tried in self.timed if tried.median_s is not None]
        if not times:
            return "; ".join(dict.fromkeys(tried.failure for tried in self.timed))
        times_text = f"{seconds_text(self.baseline_s)}, the best kernel {seconds_text(min(times))}"
        if self.no_ratio or not self.reliability.is_reliable:
            why = self.no_ratio if self.reliability.is_reliable else self.reliability.text
            return f"no kernel was clearly faster at first use: {times_text}; {why}"
        faster = "faster" if self.baseline_s <= min(times) else f"within {LEAST_GAIN:.0%}"
        return f"{faster} at first use: {times_text}"

    def has(self, candidates: tuple[BoundCandidate, ...]) -> bool:
        """Returns whether all of ``candidates`` were tried: timed, or failed."""
        tried = {timed.configuration.candidate for timed in self.timed}
        return all(bound.candidate in tried for bound in candidates)


def baseline_name() -> str:
    """Returns the BLAS of ``np.matmul`` with its threads: "openblas 0.3.30 SkylakeX x1".

    "numpy" and its version where the BLAS is not known.
    """
    libraries = (pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")
    blas = next(libraries, None)
    if blas is None:
        return f"numpy {np.__version__}"
    architecture = blas.get("architecture", "")
    text = f"{blas['internal_api']} {blas['version']} {architecture} x{blas['num_threads']}"
    return " ".join(text.split())


def time_first_use(
    problem: Problem, candidates: tuple[BoundCandidate, ...], loader: KernelLoader, otherwise: Otherwise
) -> tuple[FirstUse, dict[Candidate, KernelCall]]:
    """Verifies candidates and times them interleaved with ``np.matmul``; returns times and loaded kernels.

    ``np.matmul`` is timed twice for the noise. A candidate that fails has its failure in place of a time, and
    no kernel. ``otherwise``: what a kernel calls for arrays that it cannot take.
    """
    arrays = ProblemArrays(problem, np.random.default_rng(SEED))
    calls: dict[Candidate, KernelCall] = {}
    failures: dict[Candidate, str] = {}
    for bound in candidates:
        try:
            call = loader.loaded(problem, bound.script_text, otherwise)
            _verify(problem, call, arrays)
            calls[bound.candidate] = call
        except CandidateError as error:
            failures[bound.candidate] = f"{error.stage.value}: {error.reason}"
    with TimingLock("cpu", holder_text(problem), LockWait(ignore_holder, limit_s=LOCK_LIMIT_S)).held():
        baseline, *times, again = _times((numpy_product, *calls.values(), numpy_product), problem, arrays)
    noise = noise_of(baseline, again)
    quality = round_quality(noise, baseline, None, quietest_reference_s=None, spare_cores=0)
    evidence = Evidence(is_interleaved=True, noise=noise, reliability=quality.reliability)
    medians = {candidate: time.median_s for candidate, time in zip(calls, times, strict=True)}
    timed = []
    for bound in candidates:
        candidate = bound.candidate
        configuration = Configuration(candidate.strategy, candidate.choices)
        failure = failures.get(candidate, "")
        timed.append(TimedConfiguration(configuration, medians.get(candidate), failure))
    first_use = FirstUse(
        baseline_name(),
        baseline.median_s,
        tuple(timed),
        reliability_in_round((baseline,), evidence),
        _no_ratio(times, baseline, evidence),
    )
    return first_use, calls


def _verify(problem: Problem, call: KernelCall, arrays: ProblemArrays) -> None:
    rng = np.random.default_rng(SEED)
    for draw in range(DRAWS):
        if draw % 2:
            arrays.flip_signs()
        else:
            arrays.fill(rng)
        call(*_as_passed(problem, *arrays.operands))
        arrays.evaluate()  # raises CandidateError for a wrong result


def _no_ratio(times: list[Measurement], baseline: Measurement, evidence: Evidence) -> str:
    best = min(times, key=lambda time: time.median_s, default=None)
    if best is None:
        return ""
    compared = comparison(best, baseline, evidence)
    if isinstance(compared, NotComparable):
        return compared.reason
    return ""


def _times(calls: tuple[MatmulCall, ...], problem: Problem, arrays: ProblemArrays) -> tuple[Measurement, ...]:
    # the caller's arrays may lie on small pages, the slowest place: what is fastest there is a safe choice
    on_small_pages = (copy_on_small_pages(operand, problem.offset_bytes) for operand in arrays.operands)
    operands = _as_passed(problem, *on_small_pages)

    def repeated(call: MatmulCall) -> Callable[[int], None]:
        def repeat(times: int) -> None:
            for _ in range(times):
                call(*operands)

        return repeat

    return timing.measure_together(tuple(map(repeated, calls)), EFFORT, np.random.default_rng(SEED))


def _as_passed(problem: Problem, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    return (a.T if problem.layout == "tn" else a, b.T if problem.layout == "nt" else b, c)


def default_folder() -> Path:
    """Returns the default folder for first-use timings: ``first-use`` in tuner's user cache directory."""
    import platformdirs

    return platformdirs.user_cache_path("tuner") / "first-use"


@dataclass(frozen=True)
class FirstUseKey:
    """All that the times of a first use depend on; ``problem`` has exact sizes and the arrays' alignment."""

    problem: Problem = field(metadata=PROBLEM)
    machine: str  # Machine.name
    compiler: str  # Compiler.fingerprint
    threads: int
    baseline: str  # with version and threads

    @property
    def name(self) -> str:
        """Returns a hash of the key: the name of its file without a suffix."""
        return hashlib.sha256(json.dumps(encode(self), sort_keys=True).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class _Stored:
    """The content of a first-use file: format and version, the key, and the times."""

    format: str
    version: int
    key: FirstUseKey
    first_use: FirstUse


class FirstUseCache:
    """Results of first uses as files in a folder, which processes share.

    A file is written whole, then renamed.
    """

    def __init__(
        self,
        folder: Path,
        wait_limit_s: float = WAIT_LIMIT_S,  # for the process that works on the same key
        reported_after_s: float = REPORTED_AFTER_S,
    ) -> None:
        self._folder = folder
        self._wait_limit_s = wait_limit_s
        self._reported_after_s = reported_after_s

    def read(self, key: FirstUseKey) -> FirstUse | None:
        """Returns the stored result of a key; None if there is none, or its file is damaged."""
        path = self._folder / f"{key.name}.json"
        try:
            document = parsed(path.read_bytes(), path.name)
            require_format(document, FORMAT, VERSION, path.name)
            stored = decode(_Stored, document, f"{path.name}: ")
        except (OSError, UsageError):
            return None
        if stored.key == key:
            return stored.first_use
        return None

    def write(self, key: FirstUseKey, first_use: FirstUse) -> None:
        """Stores the result of a first use; does nothing where the folder cannot be written."""
        content = json.dumps(encode(_Stored(FORMAT, VERSION, key, first_use)), indent=1).encode()
        with contextlib.suppress(OSError):
            replace_file(self._folder / f"{key.name}.json", content)

    @contextlib.contextmanager
    def held(self, key: FirstUseKey) -> Iterator[None]:
        """Context manager: one process at a time works on a key.

        Runs the body without the lock if no lock can be made, or if another process holds it for longer than
        the cache's limit.
        """
        descriptor = None
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(
                self._folder / f"{key.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        if descriptor is None:
            yield
            return
        with owned_lock_file(descriptor):
            self._wait_for(descriptor, key)
            yield

    def _wait_for(self, descriptor: int, key: FirstUseKey) -> None:
        """Waits for the lock of a file and takes it; returns without the lock after a limit of time."""
        started_s = time.monotonic()
        is_reported = False
        while not _is_taken(descriptor):
            waited_s = time.monotonic() - started_s
            if waited_s > self._wait_limit_s:
                return
            if waited_s > self._reported_after_s and not is_reported:
                is_reported = True
                holder = os.pread(descriptor, HOLDER_BYTES, 0).decode(errors="replace").strip()
                log.warning(
                    "waiting for process %s, at most %g s: it times %s at its first use",
                    holder,
                    self._wait_limit_s,
                    key.problem.key,
                )
            time.sleep(LOOK_AGAIN_S)


def _is_taken(descriptor: int) -> bool:
    """Returns whether this process holds the lock of a file now; it then writes its process id there.

    True also if files cannot be locked here: no lock is needed then. False if another process holds the lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(descriptor, f"{os.getpid()}".ljust(HOLDER_BYTES).encode(), 0)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, or a full disk
        return True
    return True
