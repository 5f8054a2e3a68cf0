"""Programs as fusions: quantized layers, schedules, threads, shares of times; saved, loaded and explained."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.cli.conftest import Tuner
from tests.db.test_campaigns import SUMMARY
from tests.fusion_problems import first_script, program_text
from tests.models.fusions.payload_text import with_weights
from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.fusions import CONTRACTION
from tuner.core.instruction_sets import NEON
from tuner.core.machine import Machine
from tuner.core.problem import WARM, Problem
from tuner.core.programs import (
    FIRST,
    LOOPS,
    NEAREST,
    TUNED,
    ExplainedFusion,
    FusionSchedule,
    loops_note,
    no_schedules,
)
from tuner.core.reliability import RELIABLE, unreliable
from tuner.models import fusion_compiler
from tuner.models.fusion_compiler import schedule_fusion
from tuner.models.fusion_times import with_shares
from tuner.models.fusions import formation
from tuner.models.fusions.payload import NotFused
from tuner.models.fusions.pipeline import FormedProgram, fuse_program
from tuner.models.linked_programs import compile_fusions
from tuner.models.run.fused_code import FusedImage
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.models.tunable_fusions import tunable_fusions
from tuner.results.output.program_tables import explained_document, fusion_lines, fusion_table
from tuner.runtime.cpu.host import describe_machine
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir
M, K, HIDDEN, N = 29, 43, 230, 150
CANDIDATE = Candidate.of("rows_cpu", {"chunk": 16})
BROKEN = "module attributes {transform.with_named_sequence} { transform.named_sequence @other() }"


def bytes_of(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


W1, W2 = bytes_of(1, K, HIDDEN), bytes_of(2, HIDDEN, N)
COLUMNS, BIAS = np.random.default_rng(3).random((2, N), np.float32)
COLUMNS /= 64  # sums of bytes are large
# Two layers: the first is requantized, the second one scaled by columns, with bias and relu.
TEXT = text_beside(__file__, "LAYERS")
for name, array in (("W1", W1), ("W2", W2), ("S", COLUMNS), ("B", BIAS)):
    TEXT = TEXT.replace(f"dense<{name}>", f'dense<"0x{array.tobytes().hex().upper()}">')


def expected(x: np.ndarray) -> np.ndarray:
    hidden = np.rint((x.astype(np.int32) @ W1.astype(np.int32)) / 128).clip(-128, 127).astype(np.int32)
    sums = hidden @ W2.astype(np.int32)
    result: np.ndarray = np.maximum(sums.astype(np.float32) * COLUMNS + BIAS, 0)
    return result


def compiled(text: str = TEXT, machine: Machine | None = None, threads: int = 1) -> FusedImage:
    found = compile_fusions(text, None, machine or describe_machine(), threads=threads)
    assert not isinstance(found, NotFused), found
    return found


@pytest.mark.slow
def test_each_layer_is_one_fusion_with_a_schedule_and_gives_what_numpy_gives() -> None:
    fusions = compiled().code.fusions
    assert [each.kind for each in fusions] == [CONTRACTION, CONTRACTION]
    if describe_machine().isa != NEON:
        assert {each.strategy for each in fusions} <= {"contraction_cpu_vnni", "contraction_cpu_amx"}
    x = bytes_of(5, M, K)
    program = tuner.compile_program(TEXT, target="cpu")
    for _ in range(3):
        np.testing.assert_allclose(program(x), expected(x), rtol=1e-6, atol=1e-6)


def test_without_products_of_bytes_layers_are_loops_and_say_so() -> None:
    plain = replace(describe_machine(), isa="none", processor="Plain processor")
    found = compiled(machine=plain)
    why = "no strategy is for contraction of i8 of these sizes on Plain processor"
    assert [(each.strategy, each.reason) for each in found.code.fusions] == [("", why)] * 2
    x = bytes_of(8, M, K)
    result = FusedFunction(found.code, found.weights)(x)
    np.testing.assert_allclose(result, expected(x), rtol=1e-6, atol=1e-6)
    tunable = tunable_fusions(TEXT, None, WARM, plain)
    assert tunable.problems == ()
    assert all(each.endswith(why) for each in tunable.left_out)


def test_a_layer_counts_by_the_peak_of_what_it_multiplies() -> None:
    assert [each.element for each in compiled().code.fusions] == ["i8", "i8"]


# Payloads on the CPU: as fusions where they can be, else as a whole, and the reason is given.

WEIGHTS = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
LINEAR = text_beside(__file__, "LINEAR").replace("DATA", WEIGHTS.tobytes().hex().upper())
LOOP = text_beside(__file__, "LOOP")


def test_payloads_with_weights_are_fusions_and_those_with_control_flow_a_whole() -> None:
    program: Any = tuner.compile_program(LINEAR, target="cpu")
    assert isinstance(program, FusedFunction)
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.testing.assert_allclose(program(x), np.maximum(x @ WEIGHTS.T, 0), rtol=1e-5, atol=1e-6)
    (fusion,) = program.code.fusions
    assert (fusion.kind, fusion.origin) == ("contraction", "first")
    assert program.code.needs[0] in ("avx512", "avx2")
    program = tuner.compile_program(LOOP, target="cpu")
    assert isinstance(program, HostFunction)
    np.testing.assert_array_equal(program(np.ones(4, np.float32), 2), [3, 3, 3, 3])
    assert "index is not a tensor" in program.why_no_fusions


def explain(folder: Path, text: str, *options: str) -> Any:
    (folder / "program.mlir").write_text(text)
    tool = Tuner(folder / "results.db", real_backends())
    return tool("run", str(folder / "program.mlir"), "--explain", *options)


def test_run_says_why_a_program_is_computed_as_a_whole(tmp_path: Path) -> None:
    done = explain(tmp_path, LOOP, "--target", "cpu", "--arg", "1=3")
    assert done.code == 0, done.err
    assert "whole   no fusions, " in done.out
    assert "argument 1: index is not a tensor" in done.out
    refused = explain(tmp_path, LOOP, "--target", "simulator")
    assert refused.code == 2
    assert "--explain cannot be combined with target simulator" in refused.err


@pytest.mark.slow
def test_run_explains_each_fusion_and_how_to_tune_them(tmp_path: Path) -> None:
    done = explain(tmp_path, LINEAR, "--target", "cpu")
    assert done.code == 0, done.err
    *_, header, row, following = done.out.splitlines()
    assert header.split()[:6] == ["fusion", "kind", "time", "reliability", "share", "roofline"]
    assert row.split()[:2] == ["g0", "contraction"]
    assert "100%" in row or "unreliable" in row
    assert " first " in row
    assert following.startswith("next    tuner tune ")
    (fusion,) = json.loads(explain(tmp_path, LINEAR, "--target", "cpu", "--json").out)["fusions"]
    assert fusion["ops"] == ["linalg.matmul", "arith.maximumf"]
    assert (fusion["flop"], fusion["reason"]) == (2 * 5 * 4 * 6, None)
    assert fusion["share"] == (1 if fusion["reliability"] == "reliable" else None)
    assert fusion["roofline"] is None or 0 < fusion["roofline"] < 1


# Shares of a program's fusions: only of times that can be relied on.

LONG = ExplainedFusion(SUMMARY, 6e-6, reliability=RELIABLE)
SHORT = ExplainedFusion(replace(SUMMARY, kind="rows"), 2e-6, reliability=RELIABLE)


@pytest.mark.slow
def test_shares_are_of_reliable_times_and_one_disturbed_fusion_leaves_the_others_without() -> None:
    first, second = with_shares((LONG, SHORT), describe_machine(), 8e-6)
    assert (first.share, second.share) == (0.75, 0.25)
    assert first.roofline is not None
    parts = (replace(LONG, time_s=75.21e-6), replace(SHORT, time_s=39.74e-6))
    why = unreliable("it takes longer than a whole call, 11.55 us")
    for each in with_shares(parts, describe_machine(), 11.55e-6):
        assert (each.reliability, each.share, each.roofline) == (why, None, None)
    disturbed = replace(SHORT, reliability=unreliable("the reference kernel drifted by 34%: load"))
    found = with_shares((LONG, disturbed), describe_machine(), 8e-6)
    assert [each.share for each in found] == [None, None]
    assert found[0].roofline is not None
    header, *rows = fusion_table(found)
    one, other = (dict(zip(header, row, strict=True)) for row in rows)
    assert (one["reliability"], one["share"]) == ("reliable", "-")
    assert (other["reliability"], other["share"], other["roofline"]) == ("unreliable", "-", "-")
    document = explained_document(found[1])
    assert document["reliability"] == "unreliable: the reference kernel drifted by 34%: load"
    assert (document["share"], document["roofline"]) == (None, None)


def test_the_first_schedule_that_compiles_is_used_and_two_products_of_one_a_count_once() -> None:
    formed = fuse_program(program_text())
    assert isinstance(formed, FormedProgram)
    rows = formed.program.fusions[1]

    broken = FusionSchedule(CANDIDATE, BROKEN, TUNED, 1)

    def two(problem: Problem, _threads: int) -> Iterator[FusionSchedule]:
        yield broken
        yield FusionSchedule(CANDIDATE, first_script(problem).text, NEAREST, 2)

    machine = describe_machine()
    assert schedule_fusion(rows, machine, two).summary.origin == NEAREST
    assert schedule_fusion(rows, machine, lambda _problem, _threads: iter([broken])).summary.origin == FIRST
    formed = fuse_program(text_beside(__file__, "PRODUCTS_OF_ONE_A"))
    assert isinstance(formed, FormedProgram)
    (pair,) = formed.program.fusions
    summary = schedule_fusion(pair, describe_machine(), no_schedules).summary
    assert summary.flop == 2 * 2 * 8 * 32 * 16


def program(name: str, **sizes: int) -> str:
    """Returns a program of sizes whose names stand in its text; its weights are many different numbers."""
    text = text_beside(__file__, "MAPS") + text_beside(__file__, name.upper())
    for size, number in sizes.items():
        text = text.replace(size.upper(), str(number))
    return with_weights(text)


KINDS = ("pair", "batch_matmul", "attention", "rows", "elementwise", "convolution", "loops")
PROGRAMS = {
    "contraction": program("contraction", rows=29, inner=40, columns=70),
    "contraction of whole tiles": program("contraction", rows=12, inner=32, columns=128),
    "contraction of one row": program("contraction", rows=1, inner=32, columns=300),
    "layers of bytes": TEXT,
} | {name: program(name) for name in KINDS}


@cache
def divided(name: str, threads: int) -> FusedFunction:
    """Returns a program whose fusions are all divided between threads; an attention is one fusion."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("XDG_CACHE_HOME", folder)  # code that depends on the patches is kept by nobody
        patch.setattr(fusion_compiler, "LEAST_S", 0.0)
        patch.setattr(formation, "LEAST_KEYS", 1)
        patch.setattr(formation, "LEAST_SCORES", 1)
        found = compiled(PROGRAMS[name], threads=threads)
    return FusedFunction(found.code, found.weights)


def inputs_of(function: FusedFunction, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [each.shape for each in function.code.arguments]
    if function.code.arguments[0].element == "i8":
        return [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def results(function: Any, inputs: list[np.ndarray]) -> list[bytes]:
    found = function(*inputs)
    return [each.tobytes() for each in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_kind_of_fusion_gives_the_bits_of_one_thread(name: str, threads: int) -> None:
    alone, together = divided(name, 1), divided(name, threads)
    inputs = inputs_of(alone)
    expected = results(alone, inputs)
    assert together.code.threads == threads
    assert (name == "attention") == ([each.strategy for each in alone.code.fusions] == ["attention_cpu"])
    is_divided = [each.is_divided for each in together.code.fusions]
    assert all(is_divided) if name == "layers of bytes" else any(is_divided)
    for _ in range(10):
        assert results(together, inputs) == expected


def test_a_narrow_terminal_keeps_what_scheduled_a_fusion_and_its_time() -> None:
    (fusion,) = compiled(PROGRAMS["loops"]).code.fusions
    knobs = tuple((f"knob_{index}", index) for index in range(4))
    scheduled = replace(fusion, strategy="contraction_cpu_direct", knobs=knobs)
    scheduled = replace(scheduled, ops=("linalg.matmul", "math.exp", "arith.addf"))
    header, *_, hidden = fusion_lines((ExplainedFusion(scheduled, 1e-6),), 80)
    assert header.split()[:4] == ["fusion", "time", "reliability", "schedule"]
    assert hidden == "(columns hidden: kind, roofline, share; widen the terminal, or --json)"


def test_what_takes_much_time_as_loops_is_said_by_the_arithmetic_of_each_fusion() -> None:
    assert [each.flop for each in compiled(PROGRAMS["loops"]).code.fusions] == [23 * 11]
    padded, convolution = compiled(PROGRAMS["convolution"]).code.fusions
    assert (padded.flop, convolution.flop) == (4 * 9 * 9, 2 * 6 * 9 * 9 * 4 * 3 * 3)
    slow = replace(convolution, origin=LOOPS, ops=tuple("abcd") + convolution.ops)
    said = "% of the time (estimated) is scalar loops, as no schedule fits: a, b, c, d and 1 more"
    assert loops_note([ExplainedFusion(each) for each in (padded, slow)]).endswith(said)
    assert fusion_lines((ExplainedFusion(slow),), None, ["g0"])[-2:] == ["loops   g0", f"loops   100{said}"]
    for loops_s, other_s, expected in (
        (9e-6, 3e-6, "75% of the time (measured)"),
        (9e-6, 9e-5, ""),  # 9 %
        (4e-6, 1e-6, ""),  # so little is not said
    ):
        pairs = ((slow, loops_s), (padded, other_s))
        timed = [ExplainedFusion(each, time_s, reliability=RELIABLE) for each, time_s in pairs]
        assert loops_note(timed)[: len(expected)] == expected
        assert bool(loops_note(timed)) == bool(expected)


def test_two_threads_of_python_may_call_programs_at_once() -> None:
    """The same program and another one, from two threads: calls wait for each other."""
    functions = [divided(name, 2) for name in ("rows", "contraction", "rows")]
    inputs = [inputs_of(each, at) for at, each in enumerate(functions)]
    expected = [results(*each) for each in zip(functions, inputs, strict=True)]

    def is_right(at: int) -> bool:
        return all(results(functions[at], inputs[at]) == expected[at] for _ in range(50))

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(is_right, range(3)))


IN_A_FRESH_PROCESS = """
import sys
import numpy as np
import tuner
program = tuner.load(sys.argv[1], **({"threads": int(sys.argv[3])} if len(sys.argv) > 3 else {}))
np.save(sys.argv[2], program(np.load(sys.argv[2])))
print(program.code.threads, "torch_mlir" in sys.modules)
"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("given", "threads"), [((), 3), (("2",), 2), (("1",), 1)])
def test_a_program_is_exported_with_its_threads(tmp_path: Path, given: tuple[str, ...], threads: int) -> None:
    function = divided("contraction", 3)
    (inputs,) = inputs_of(function)
    function.export(tmp_path / "program")
    np.save(tmp_path / "x.npy", inputs)
    command: list[str | Path] = [sys.executable, "-c", IN_A_FRESH_PROCESS]
    command += [tmp_path / "program", tmp_path / "x.npy", *given]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{threads} False\n", "", 0)
    assert results(function, [inputs]) == [np.load(tmp_path / "x.npy").tobytes()]


def test_a_program_of_one_thread_is_loaded_for_one(tmp_path: Path) -> None:
    divided("rows", 1).export(tmp_path / "one")
    with pytest.raises(UsageError, match=r"^threads: found 2, allowed 1; compile the program with threads=2"):
        tuner.load(tmp_path / "one", threads=2)
    divided("rows", 2).export(tmp_path / "two")
    with pytest.raises(UsageError, match=r"^threads: found 0, allowed 1 to 256$"):
        tuner.load(tmp_path / "two", threads=0)


def test_fusions_of_little_work_are_left_to_one_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fusion_compiler, "LEAST_S", 15e-6)
    found = compiled(PROGRAMS["rows"], threads=2)
    assert (found.code.threads, [each.is_divided for each in found.code.fusions]) == (1, [False])
    assert b"program_part" not in found.code.object_code


def test_other_numbers_of_threads_are_refused() -> None:
    for threads in (0, 257):
        with pytest.raises(UsageError, match=f"^threads: found {threads}, allowed 1 to 256$"):
            tuner.compile_program(PROGRAMS["rows"], target="cpu", threads=threads)
    with pytest.raises(UsageError, match="threads 2 cannot be combined with target simulator"):
        tuner.compile_program(PROGRAMS["rows"], target="simulator", threads=2)
