"""Both ports without MLIR and clock, and candidates that misbehave in real processes.

A fake script is the JSON of the candidate's knobs. ``x`` decides the time; ``comment`` changes the script
but not the code; ``deed`` and ``at`` make it misbehave at a stage.
"""

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from numpy.random import Generator

from tests.forwarding import ForwardingTarget
from tuner.core import interfaces
from tuner.core.candidate import Candidate, TargetName, Value
from tuner.core.compiled_code import KernelCode, Launch, Resources
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import Compiler
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.runner import RunnerOrder

PROBLEM = Matmul(8, 8, 8)
BEST_X = 7
HANG_S = 120.0  # longer than any wait on a busy machine that is not stuck
BASELINE_X = 8  # as fast as the baseline
Times = TypeVar("Times")
Knobs = dict[str, Value]
Deed = Callable[[Knobs], object]

STAGES = ("bind", "transform", "lower", "load", "verify", "measure")


def time_of(x: int) -> float:
    """Returns the seconds of a call: a parabola with its valley at BEST_X."""
    return 1e-3 * (1 + (x - BEST_X) ** 2)


def candidate(x: int, deed: str = "", at: str = "", **more: Value) -> Candidate:
    """Returns a fake candidate; ``deed`` is one of DEEDS and happens at stage ``at``."""
    misdeed = {"deed": deed, "at": at} if deed else {}
    return Candidate.of("fake", {"x": x, **more, **misdeed})


def script_of(text: str) -> Script:
    return Script(text, hashlib.sha256(text.encode()).hexdigest())


def bind(chosen: Candidate) -> Script:
    """Writes the knobs down; a deed at ``bind`` happens here."""
    knobs = dict(chosen.choices)
    _maybe_misbehave("bind", knobs)
    return script_of(json.dumps(knobs, sort_keys=True))


class Memory:
    """Remembers records as the results database does: an id each, recalled by script or by code."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, record: Record) -> None:
        self.records.append(record)

    def recall(self, script_sha256: str, artifact_sha256: str) -> Record | None:
        for number, record in enumerate(self.records):
            keys = (record.script_sha256, script_sha256), (record.artifact_sha256, artifact_sha256)
            if any(known == asked != "" for known, asked in keys):
                return replace(record, reused_from=number)
        return None


def bound(record: Record) -> interfaces.BoundRecord:
    """Returns a record as a runner takes it for the final re-measurement."""
    return interfaces.BoundRecord(record, bind(record.candidate))


def order(memory: Memory | None = None) -> RunnerOrder:
    """Returns a runner order of fake candidates; without a memory no earlier outcome is found."""
    recall = (lambda script, artifact: None) if memory is None else memory.recall
    return RunnerOrder(PROBLEM, TargetName("fake"), bind, recall)


@dataclass(frozen=True)
class Loaded:
    """The result of a fake target's ``load``."""

    knobs: tuple[tuple[str, Value], ...]

    @property
    def call_s(self) -> float:
        return time_of(int(dict(self.knobs)["x"]))


class FakeTarget(
    interfaces.AbstractCompiler, interfaces.AbstractEvaluator, interfaces.AbstractBaselineSource
):
    """Times are a function of the knobs; deeds happen at the stage they name."""

    baseline_threads = 1

    def machine(self) -> Machine:
        return Machine("fake", "none", "avx512", False, 1, 2, 0, 0, 0, 1 << 30)

    def compiler(self) -> Compiler:
        return Compiler("fake 1.0", (), "0" * 64)

    def compile(self, problem: Problem, script: Script) -> Artifact:
        knobs = json.loads(script.text.partition("\n")[0])  # ops may follow
        _maybe_misbehave("compile", knobs)
        knobs.pop("comment", None)
        code = json.dumps(knobs, sort_keys=True)
        stages = (("transform", 1e-4), ("lower", 2e-4))
        return Artifact(KernelCode.of_host(code), hashlib.sha256(code.encode()).hexdigest(), stage_s=stages)

    def load(self, problem: Problem, artifact: Artifact) -> object:
        knobs = json.loads(artifact.code.text)
        _maybe_misbehave("load", knobs)
        return Loaded(tuple(knobs.items()))

    def verify(self, problem: Problem, loaded: object, rng: Generator) -> Verdict:
        assert isinstance(loaded, Loaded)
        _maybe_misbehave("verify", dict(loaded.knobs))
        return Verdict(0.25, problem.sizes[0] * problem.sizes[1])

    def measure(self, problem: Problem, loaded: object, effort: Effort, rng: Generator) -> Measurement:
        assert isinstance(loaded, Loaded)
        _maybe_misbehave("measure", dict(loaded.knobs))
        call_s = loaded.call_s
        is_complete = effort.stop_above_s is None or call_s <= effort.stop_above_s
        return Measurement((call_s,) * effort.min_samples, 1, call_s, (call_s, call_s), is_complete)

    def load_baselines(self, problem: Problem, rng: Generator) -> tuple[interfaces.LoadedLibrary, ...]:
        return (interfaces.LoadedLibrary("fake", "FakeBLAS 1.0", Loaded((("x", BASELINE_X),))),)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: Generator
    ) -> tuple[Measurement, ...]:
        for kernel in loaded:
            assert isinstance(kernel, Loaded)
            _maybe_misbehave("together", dict(kernel.knobs))
        return tuple(self.measure(problem, kernel, effort, rng) for kernel in loaded)


class ClockedTarget(ForwardingTarget):
    """Compiles for ``compile_s`` and times for ``measure_s``, and records when it did so."""

    def __init__(self, log: str, compile_s: float, measure_s: float) -> None:
        super().__init__(FakeTarget(), FakeTarget())
        self._log, self._compile_s, self._measure_s = Path(log), compile_s, measure_s

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Records the monotonic clock every half millisecond: pauses of the process show as gaps."""
        ticks = [time.monotonic()]
        while ticks[-1] < ticks[0] + self._compile_s:
            time.sleep(0.0005)
            ticks.append(time.monotonic())
        self._write("compile", ticks)
        return super().compile(problem, script)

    def measure(self, problem: Problem, loaded: object, effort: Effort, rng: Generator) -> Measurement:
        return self._note(lambda: self._evaluator.measure(problem, loaded, effort, rng))

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: Generator
    ) -> tuple[Measurement, ...]:
        return self._note(lambda: self._evaluator.measure_together(problem, loaded, effort, rng))

    def _note(self, work: Callable[[], Times]) -> Times:
        start = time.monotonic()
        time.sleep(self._measure_s)
        result = work()
        self._write("timing", [start, time.monotonic()])
        return result

    def _write(self, what: str, times: list[float]) -> None:
        (self._log / f"{what}-{os.getpid()}-{time.monotonic_ns()}").write_text(json.dumps(times))


TOO_MUCH_MEMORY = "k: shared bytes: found 262144, allowed 232448 on sm_90"


class UntimedTarget(ForwardingTarget):
    """Verifies and cannot time. Its code is a GPU program; x = 3 needs too much memory, x = 4 spills."""

    is_timed = False

    def __init__(self) -> None:
        super().__init__(FakeTarget(), FakeTarget())

    def compile(self, problem: Problem, script: Script) -> Artifact:
        artifact = super().compile(problem, script)
        x = json.loads(script.text)["x"]
        shared_bytes = 2**18 if x == 3 else 1024
        resources = Resources("k", 32, 100 * (x == 4), 0, 0, shared_bytes, 0, 0.5, 4)
        launches = (Launch("k", (1, 1, 1), (32, 1, 1), shared_bytes, ("a", "b", "c")),)
        program = KernelCode("sm_90", artifact.code.text, b"elf", launches, (), (resources,))
        refusal = Failure(Stage.RESOURCES, TOO_MUCH_MEMORY) if x == 3 else None
        return replace(artifact, code=program, refusal=refusal)

    def verify(self, problem: Problem, loaded: object, rng: Generator) -> Verdict:
        return replace(super().verify(problem, loaded, rng), notes=("1 of 1 blocks",))

    def measure(self, *_: Any, **__: Any) -> Measurement:
        raise AssertionError("asked for a time")

    def measure_together(self, *_: Any, **__: Any) -> tuple[Measurement, ...]:
        raise AssertionError("asked for times")


class BrokenTarget:
    """Cannot even be built."""

    def __init__(self) -> None:
        raise ImportError("no module named 'mlir'")


class UnprintableError(Exception):
    """An exception that raises when it is printed, and cannot be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __str__(self) -> str:
        raise RuntimeError("do not look")


def fake_factory() -> Factory:
    return Factory("tests.fakes:FakeTarget")


def is_alive(pid: int) -> bool:
    """Returns whether a process runs; a zombie that was not reaped yet does not."""
    return state_of(pid) not in ("", "Z")


def state_of(pid: int) -> str:
    """Returns the letter of a process's state, T for stopped; '' when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children_of(pid: int) -> list[int]:
    """Returns the process ids of the children of a process, zombies included."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def await_death(pids: list[int], within_s: float = HANG_S) -> list[int]:
    """Waits for processes to end; returns the processes that did not."""
    give_up = time.monotonic() + within_s
    while (left := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < give_up:
        time.sleep(0.01)
    return left


def _maybe_misbehave(stage: str, knobs: Knobs) -> None:
    if knobs.get("at") == stage:
        DEEDS[str(knobs["deed"])](knobs)


def _abort(_: Knobs) -> None:
    os.write(2, b"LLVM ERROR: Cannot select: t5: f32 = fancy\n  t4: f32 = undef\nIn function: kernel\n")
    os.abort()


def _write(_: Knobs) -> None:
    """Writes a MiB to the disk, as a compiler may do."""
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * (1 << 20))


def _loop(_: Knobs) -> None:
    while True:
        pass


def _hog(_: Knobs) -> None:
    held = []
    while True:
        held.append(b"x" * (16 << 20))
        time.sleep(0.005)


def _babble(_: Knobs) -> None:
    print("garbage on stdout")  # noqa: T201 - where a protocol on stdout would break
    os.write(1, b"\x00\xff" * 100_000)
    os.write(2, b"and on stderr")


def _raising(error: Callable[[Knobs], Exception]) -> Deed:
    def deed(knobs: Knobs) -> None:
        raise error(knobs)

    return deed


def _grandchild(knobs: Knobs) -> None:
    """Starts a process that would outlive its parent, writes its id to a file, and hangs."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    Path(str(knobs["note"])).write_text(str(sleeper.pid))
    time.sleep(1000)


_scars: list[int] = []

DEEDS: dict[str, Deed] = {
    "segfault": lambda _: ctypes.string_at(0),
    "abort": _abort,
    "write": _write,
    "loop": _loop,
    "sleep": lambda _: time.sleep(1000),
    "hog": _hog,
    "exit": lambda _: os._exit(3),
    "polite_exit": lambda _: sys.exit("enough"),
    "babble": _babble,
    "odd": _raising(lambda _: KeyError("tile_m")),
    "unprintable": _raising(lambda _: UnprintableError()),
    "fail": _raising(lambda knobs: CandidateError(Stage(str(knobs["at"])), f"fails at {knobs['at']}")),
    "wrong": _raising(lambda _: CandidateError(Stage.VERIFY, "element (0, 1): found 2, expected 1")),
    "grandchild": _grandchild,
    "scar": lambda _: _scars.append(1),
    # in a process that has evaluated another candidate, as after a write out of bounds
    "crash_if_used": lambda _: ctypes.string_at(0) if _scars else None,
}
