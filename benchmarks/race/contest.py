"""Checks and times the kernels of one case: a process for each kernel, one C function, the same arrays.

Arrays are in a file of shared memory that all processes map. Each process is pinned to the same core and
waits unless it is asked, so one kernel runs at a time. In a round each kernel is timed once, in an order
drawn for the round.
"""

import json
import os
import random
import select
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from benchmarks.race.peer import PeerKernel, RaceMatmul
from benchmarks.race.timed_command import SINGLE_THREAD
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import Inputs, output_dtype

SERVER = Path(__file__).parent / "served" / "kernel_server.py"
CALLS = SERVER.with_name("calls.c")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a folder with a random name in it is used
OFFSETS = (0, 16)  # bytes from a boundary of a cache line of 64 bytes
PAGE_BYTES = 4096
SAMPLE_S = 4e-3  # at least, of a kernel's calls in a round
WARM_S = 1e-3  # of untimed calls before them
SLOW_S = 0.1  # per call: such a kernel is in every SLOW_EVERY-th round only
SLOW_EVERY = 5
LIMIT_S = 300.0  # of an answer
BF16_ROUNDING = 2.0**-8  # relative, of a C that a kernel gives as bf16
SEED = 1


@dataclass(frozen=True)
class RacingKernel:
    """A kernel of the contest and the interpreter that loads it."""

    name: str
    kernel: PeerKernel
    python: Path
    is_rounded: bool = False  # C is given in the type of A and B


@dataclass(frozen=True)
class KernelTiming:
    """Times of one kernel at one offset, or why there are none."""

    name: str
    offset: int
    samples_s: tuple[tuple[int, float], ...] = ()  # (round, seconds per call)
    error: float | None = None  # largest, in units of the tolerance for a sum in this type; correct: <= 1
    failure: str = ""

    @property
    def median_s(self) -> float | None:
        """Returns the median of the samples; None without samples."""
        if not self.samples_s:
            return None
        return statistics.median(seconds for _, seconds in self.samples_s)


def build_calls(folder: Path) -> Path:
    """Compiles the C function that calls kernels. Raises CalledProcessError without a C compiler."""
    library = folder / "libcalls.so"
    subprocess.run(("cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(CALLS)), check=True)
    return library


def contest(
    case: RaceMatmul, runners: Sequence[RacingKernel], calls: Path, core: int, rounds: int
) -> tuple[KernelTiming, ...]:
    """Returns the times of each kernel at each offset; a kernel that is wrong or crashes has a failure."""
    rng = np.random.default_rng(SEED)
    inputs = draw(case.problem, draw_base(case.problem, rng), rng)
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        arrays = SharedArrays(Path(folder) / "arrays", inputs)
        with _servers(case, runners, calls, core, arrays) as servers:
            timings: list[KernelTiming] = []
            for offset in OFFSETS:
                timings += _at_offset(servers, arrays, offset, rounds)
            return tuple(timings)


@final
class SharedArrays:
    """A, B and C at each offset in one file."""

    def __init__(self, file: Path, inputs: Inputs) -> None:
        self.file = file
        self.inputs = inputs
        shapes = (
            inputs.a,
            inputs.b,
            np.empty((inputs.problem.rows, inputs.problem.sizes[1]), output_dtype(inputs.problem)),
        )
        sizes = [array.nbytes for array in shapes]
        self.places: dict[int, tuple[int, ...]] = {}
        start = 0
        for offset in OFFSETS:
            starts = []
            for size in sizes:
                starts.append(start + offset)
                start += -(-(size + offset) // PAGE_BYTES) * PAGE_BYTES
            self.places[offset] = tuple(starts)
        self._mapped = np.memmap(file, np.uint8, "w+", shape=(start,))
        for offset in OFFSETS:
            self._view(offset, 0, inputs.a)[...] = inputs.a
            self._view(offset, 1, inputs.b)[...] = inputs.b
        self._like_c = shapes[2]

    def clear(self, offset: int) -> None:
        """Fills C with bytes of ones: NaN, or -1."""
        self._view(offset, 2, self._like_c).view(np.uint8)[...] = 0xFF

    def result(self, offset: int) -> Any:
        """Returns a copy of C."""
        return self._view(offset, 2, self._like_c).copy()

    def _view(self, offset: int, operand: int, like: Any) -> Any:
        start = self.places[offset][operand]
        return np.ndarray(like.shape, like.dtype, self._mapped.data, start)


@final
class ServedKernel:
    """A process that has loaded a kernel and waits for requests."""

    def __init__(self, runner: RacingKernel, specification: dict[str, Any], core: int) -> None:
        self.runner = runner
        self._process = subprocess.Popen(
            ("taskset", "-c", str(core), str(runner.python), str(SERVER), json.dumps(specification)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **SINGLE_THREAD, **dict(runner.kernel.environment)},
            text=True,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer; {"failure": ...} where the process has ended or does not answer in LIMIT_S."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"failure": self._ended()}
        ready, _, _ = select.select((self._process.stdout,), (), (), LIMIT_S)
        if not ready:
            self.close()
            return {"failure": f"no answer after {LIMIT_S:.0f} s"}
        line = self._process.stdout.readline()
        if not line:
            return {"failure": self._ended()}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def _ended(self) -> str:
        status = self._process.wait()
        return f"crashes (signal {-status})" if status < 0 else f"its process ends with {status}"


@contextmanager
def _servers(
    case: RaceMatmul, runners: Sequence[RacingKernel], calls: Path, core: int, arrays: SharedArrays
) -> Iterator[list[ServedKernel]]:
    common = {
        "calls": str(calls),
        "sizes": [case.m, case.n, case.k],
        "dtype": case.dtype,
        "output": case.output,
        "file": str(arrays.file),
        "places": arrays.places,
    }
    servers = []
    try:
        for runner in runners:
            kernel = runner.kernel
            own = {"kind": kernel.kind, "library": kernel.library, "symbol": kernel.symbol}
            servers.append(ServedKernel(runner, {**common, **own}, core))
        yield servers
    finally:
        for server in servers:
            server.close()


def _at_offset(
    servers: Sequence[ServedKernel], arrays: SharedArrays, offset: int, rounds: int
) -> list[KernelTiming]:
    timings = {server.runner.name: _checked(server, arrays, offset) for server in servers}
    right = [server for server in servers if not timings[server.runner.name].failure]
    once_s = {server.runner.name: _single_call_s(server, offset) for server in right}
    samples: dict[str, list[tuple[int, float]]] = {name: [] for name in once_s}
    for number in range(rounds):
        for server in drawn_order(right, number):
            name = server.runner.name
            if once_s[name] > SLOW_S and number % SLOW_EVERY:
                continue
            if once_s[name] < SLOW_S:
                _timed(server, offset, calls_for(WARM_S, once_s[name]))
            seconds = _timed(server, offset, calls_for(SAMPLE_S, once_s[name]))
            if seconds is not None:
                samples[name].append((number, seconds))
    return [replace(timing, samples_s=tuple(samples.get(name, ()))) for name, timing in timings.items()]


def drawn_order(servers: Sequence[ServedKernel], number: int) -> list[ServedKernel]:
    """Returns the servers in the order of a round."""
    order = list(servers)
    random.Random(number).shuffle(order)
    return order


def calls_for(seconds: float, once_s: float) -> int:
    """Returns how many calls take ``seconds`` or more; at least 1."""
    return max(1, round(seconds / once_s))


def _checked(server: ServedKernel, arrays: SharedArrays, offset: int) -> KernelTiming:
    runner = server.runner
    arrays.clear(offset)
    answer = server.ask({"op": "check", "offset": offset})
    if "failure" in answer:
        return KernelTiming(runner.name, offset, failure=answer["failure"])
    inputs = replace(arrays.inputs, result_rounding=BF16_ROUNDING) if runner.is_rounded else arrays.inputs
    verdict, worst = compare(inputs, arrays.result(offset))
    if not verdict.max_error <= 1:
        return KernelTiming(runner.name, offset, error=verdict.max_error, failure=f"wrong: {worst}")
    return KernelTiming(runner.name, offset, error=verdict.max_error)


def _single_call_s(server: ServedKernel, offset: int) -> float:
    times = [_timed(server, offset, 1) for _ in range(3)]
    known = [seconds for seconds in times if seconds is not None]
    return min(known, default=SAMPLE_S)


def _timed(server: ServedKernel, offset: int, calls: int) -> float | None:
    answer = server.ask({"op": "time", "offset": offset, "calls": calls})
    if "failure" in answer or answer["status"] != 0:
        return None
    seconds: float = answer["seconds"]
    return seconds
