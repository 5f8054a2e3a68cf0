"""The simulator: right kernels are verified, broken ones fail with what is wrong."""

import gc
import re
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.test_launch import BLOCKS, SCALE, THREADS
from tests.gpu.target.strategies.points import mma_sync, wgmma
from tests.mlir.gpu_matmul import gpu_script
from tests.targets.evaluation import fails
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Verdict
from tuner.gpu.ptxsim.device.memory import SimulatedMemory
from tuner.gpu.ptxsim.ptx.defects import SimulationError
from tuner.gpu.ptxsim.ptx.geometry import whole_clusters
from tuner.gpu.ptxsim.target import evaluator as simulator
from tuner.gpu.ptxsim.target.evaluator import SimulatorEvaluator, simulate_program, simulated_launches
from tuner.gpu.target.compiler import GpuCompiler, find_ptxas
from tuner.targets.registry import real_backends

SMALL = Matmul(64, 64, 32)
WIDE = Matmul(64 * 4 - 9, 64 * 6 - 1, 40, "f16")
INTEGERS = Matmul(240, 376, 128, "i8", "nt")
PARTS = {"splits": 2, "block_k": 32, "depth": 0}


@pytest.fixture(scope="module")
def compiler() -> GpuCompiler:
    return GpuCompiler(chip_of("sm_90"))


@pytest.fixture(scope="module")
def artifact(compiler: GpuCompiler) -> Artifact:
    return compiler.compile(SMALL, Script.of(gpu_script()))


@pytest.fixture
def sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "WHOLE_S", 0.0)
    monkeypatch.setattr(simulator, "SAMPLE_S", 0.0)


def evaluated(problem: Problem, program: KernelCode, seed: int = 0) -> Verdict:
    return SimulatorEvaluator().verify(problem, program, np.random.default_rng(seed))


def tensor_cores(compiler: GpuCompiler, problem: Problem, **knobs: Any) -> KernelCode:
    script = mma_sync(problem, **({"block_k": 16} | knobs)).script()
    return compiler.compile(problem, Script.of(script)).code


def edited(program: KernelCode, old: str, new: str, count: int = 1) -> KernelCode:
    assert re.search(old, program.text), old
    return replace(program, text=re.sub(old, new, program.text, count=count))


@pytest.mark.mlir
def test_a_right_kernel_is_verified_on_every_element(artifact: Artifact) -> None:
    evaluator = SimulatorEvaluator()
    verdict = evaluator.verify(SMALL, evaluator.load(SMALL, artifact), np.random.default_rng(1))
    assert verdict.max_error <= 1.0
    assert verdict.elements == 64 * 64
    assert verdict.notes[0] == "matmul_kernel: 4 of 4 blocks simulated"
    assert "times as long as without bank conflicts, most at line" in verdict.notes[1]


def with_grid(program: KernelCode, grid: tuple[int, int, int]) -> KernelCode:
    return replace(program, launches=(replace(program.launches[0], grid=grid),))


WRONG = r"^\d+ of 4096 elements are wrong; worst at \[\d+, \d+\]: found .*, expected"
RACE = r"^matmul_kernel: line \d+: .*race in shared memory"
UNWRITTEN = r"^2048 of 4096 elements are wrong; worst at .*: found nan"
UNKNOWN = r"^line \d+: brkpt.*the simulator does not know"
BROKEN: dict[str, tuple[Callable[[KernelCode], KernelCode], str]] = {
    "wrong": (lambda one: edited(one, r"mul\.rn\.f32", "add.rn.f32"), WRONG),
    "race": (lambda one: edited(one, r"bar\.sync\s+0;", "", 0), RACE),
    "blocks missing": (lambda one: with_grid(one, (2, 1, 1)), UNWRITTEN),
    "a block too many": (lambda one: with_grid(one, (2, 3, 1)), r"^line \d+: st\.global.*out of bounds"),
    "unknown": (lambda one: edited(one, r"\bret;", "brkpt;\nret;"), UNKNOWN),
}


@pytest.mark.mlir
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_fails_with_what_is_wrong(artifact: Artifact, name: str) -> None:
    change, message = BROKEN[name]
    with fails(Stage.RUN if name == "unknown" else Stage.VERIFY, match=message):
        evaluated(SMALL, change(artifact.code))


@pytest.mark.mlir
@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("problem", "knobs"),
    [
        (WIDE, {}),
        (replace(WIDE, layout="nt"), {"group": 4}),
        (replace(WIDE, epilogue="bias_relu", output="f16"), {"depth": 0}),
        (replace(WIDE, sizes=(240, 376, 64)), {"splits": 2}),  # C begins as zeros
        (replace(WIDE, sizes=(240, 376, 64), epilogue="bias_relu"), {"splits": 2, "split_by": "workspace"}),
        (replace(WIDE, sizes=(247, 383, 41)), {"pack": 1}),
        (INTEGERS, PARTS),
        (INTEGERS, {**PARTS, "split_by": "workspace"}),
        (replace(INTEGERS, epilogue="bias_relu"), {**PARTS, "split_by": "workspace"}),
    ],
    ids=["plain", "grouped", "epilogue", "atomic", "workspace", "packed", "zeros", "integers", "relu"],
)
def test_of_a_large_problem_sampled_blocks_are_verified(
    compiler: GpuCompiler, problem: Problem, knobs: dict[str, Any], sampling: None
) -> None:
    program = tensor_cores(compiler, problem, **knobs)
    verdict = evaluated(problem, program, seed=1)  # of whose whole numbers two sums are zero
    assert verdict.max_error <= 1.0
    splits = knobs.get("splits", 1)
    assert f"matmul_kernel: {9 * splits} of {24 * splits} blocks simulated" in verdict.notes
    assert "C: 4 of its 4 corners are in the tiles that were compared" in verdict.notes
    assert 6 * 64 * 55 <= verdict.elements <= 9 * 64 * 64


@pytest.mark.mlir
@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("knobs", "blocks", "corners"),
    [
        *(({"cluster": each}, "14 of 30", 4) for each in ("2x1", "1x2")),
        ({"cluster": "1x2", "tiles": 2}, "6 of 16", 2),
    ],
)
def test_of_sampled_blocks_whole_clusters_are_verified(
    sampling: None, knobs: dict[str, Any], blocks: str, corners: int
) -> None:
    """The grid is rounded up to clusters: some of their blocks have no tile of C."""
    one = wgmma(Matmul(64 * 5 - 9, 64 * 5 - 8, 64, "f16"), **knobs)
    verdict = evaluated(one.problem, one.program())
    assert verdict.max_error <= 1.0
    assert f"matmul_kernel: {blocks} blocks simulated" in verdict.notes
    assert f"C: {corners} of its 4 corners are in the tiles that were compared" in verdict.notes


@pytest.mark.mlir
@pytest.mark.slow
def test_of_sampled_blocks_all_tiles_are_verified(sampling: None) -> None:
    one = wgmma(Matmul(320, 320, 8, "f16"), tiles=4)  # 25 tiles, 7 blocks
    verdict = evaluated(one.problem, one.program())
    assert "matmul_kernel: 3 of 7 blocks simulated" in verdict.notes
    assert verdict.elements == (4 + 4 + 3) * 64 * 64


@pytest.mark.mlir
@pytest.mark.usefixtures("sampling")
def test_a_wrong_or_unwritten_element_of_a_sampled_tile_is_named(compiler: GpuCompiler) -> None:
    program, first_of_a = tensor_cores(compiler, WIDE), r"(mma\.sync\S+\s+\{[^}]*\},\s*\{)([^,]*), ([^,]*),"
    with fails(Stage.VERIFY, match=r"elements are wrong; worst at \[\d+, \d+\]: found"):
        evaluated(WIDE, edited(program, first_of_a, r"\1\3, \2,"))
    with fails(Stage.VERIFY, match=r"of a tile were not written, first \[\d+, \d+\]"):
        evaluated(WIDE, edited(program, r"(?m)^.*st\.global\S*\s.*;$", ""))


@pytest.mark.mlir
def test_without_ptxas_there_is_ptx_and_a_note_instead_of_resources(artifact: Artifact) -> None:
    bare = GpuCompiler(chip_of("sm_90"), lambda: None).compile(SMALL, Script.of(gpu_script()))
    program = bare.code
    assert (program.binary, program.resources, bare.refusal) == (b"", (), None)
    assert bare.code.text == artifact.code.text
    assert evaluated(SMALL, program).notes[-1] == simulator.NO_RESOURCES


@pytest.mark.mlir
def test_the_code_of_a_script_is_the_text_of_its_ptx(artifact: Artifact) -> None:
    target = TargetName.parse("simulator:sm_90")
    found = real_backends().target(target).code(target, SMALL, Script.of(gpu_script()))
    assert found == artifact.code.text


@pytest.mark.mlir
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_with_ptxas_the_artifact_has_machine_code_and_resources(artifact: Artifact) -> None:
    program = artifact.code
    assert program.binary.startswith(b"\x7fELF")
    (resources,) = program.resources
    assert resources.kernel == "matmul_kernel"
    assert 0 < resources.registers <= 255
    assert resources.dynamic_shared_bytes == program.launches[0].dynamic_shared_bytes == 4096
    assert 0 < resources.occupancy <= 1
    assert [stage for stage, _ in artifact.stage_s] == ["transform", "lower", "assemble"]


@pytest.mark.mlir
def test_more_shared_memory_than_the_chip_has_is_a_failure_of_resources() -> None:
    script = Script.of(gpu_script(block=64, depth=256))  # 128 KiB
    problem = Matmul(64, 64, 512)
    assert GpuCompiler(chip_of("sm_90")).compile(problem, script).refusal is None
    with fails(Stage.RESOURCES, match="131072"):
        GpuCompiler(chip_of("sm_86")).compile(problem, script)


@pytest.mark.mlir
def test_a_comment_that_is_wrong_is_a_failure_to_bind(compiler: GpuCompiler) -> None:
    with fails(Stage.BIND, match="script: workspace m: found 8, allowed 64"):
        compiler.compile(SMALL, Script.of("// workspace: 2 8 64\n" + gpu_script()))


@pytest.mark.mlir
def test_there_is_no_clock() -> None:
    evaluator = SimulatorEvaluator()
    assert not evaluator.is_timed
    for time in (partial(evaluator.measure, SMALL, None), partial(evaluator.measure_together, SMALL, ())):
        with pytest.raises(CandidateError, match="the simulator has no clock"):
            time(Effort(), np.random.default_rng(0))


# A program on the simulated GPU: what runs, what is a failure at which stage, and what is a note.


def program(stride: int = 4, grid: int = 2, threads: int = 64) -> KernelCode:
    """Each thread of a block leaves its number in shared memory; another one fetches it."""
    ptx = text_beside(__file__, "EXCHANGE").replace("STRIDE", str(stride))
    launch = Launch("k", (grid, 1, 1), (threads, 1, 1), 0, ("c",))
    return KernelCode("sm_90", ptx, b"", (launch,), (KernelBuffer("c", 512, "output"),))


def c_of(one: KernelCode, blocks: tuple[tuple[int, int, int], ...] | None = None) -> list[int]:
    c = np.full(128, -1, np.int32)
    simulated_launches(one, {"c": c}, {} if blocks is None else {0: blocks})
    return list(c)


def test_a_program_changes_its_output_where_blocks_run_and_what_they_wrote_is_known() -> None:
    assert c_of(program()) == [*range(63, -1, -1)] * 2
    assert c_of(program(), ((1, 0, 0),)) == [-1] * 64 + [*range(63, -1, -1)]
    c = np.full(128, -1, np.int32)
    (simulation,) = simulate_program(program(), {"c": c}, {0: ((1, 0, 0),)})
    assert simulation.written(c).tolist() == [False] * 64 + [True] * 64
    assert not simulation.written(c.copy()).any()


def test_blocks_come_with_their_clusters() -> None:
    in_pairs = ((4, 1, 2), (5, 1, 2)), ((4, 0, 2), (5, 0, 2)), ((0, 0, 0), (1, 0, 0))
    assert whole_clusters(((5, 1, 2), (4, 0, 2), (0, 0, 0)), (2, 1, 1)) == sum(in_pairs, ())
    assert whole_clusters(((5, 1, 2), (5, 0, 2)), (1, 2, 1)) == ((5, 0, 2), (5, 1, 2))


@pytest.mark.parametrize(
    ("broken", "stage", "reason"),
    [
        (replace(program(), text="nonsense"), Stage.VERIFY, "nonsense"),
        (program(threads=2048), Stage.RUN, "found a block of 2048 threads"),
    ],
    ids=["no PTX", "launch"],
)
def test_what_is_wrong_is_a_failure_of_its_stage(broken: KernelCode, stage: Stage, reason: str) -> None:
    with fails(stage, match=reason):
        c_of(broken)


def test_blocks_and_bank_conflicts_are_noted() -> None:
    for stride, conflicts in ((4, 0), (8, 1)):
        one = program(stride)
        simulations = simulated_launches(one, {"c": np.zeros(128, np.int32)}, {0: ((0, 0, 0),)})
        notes = simulator.notes_of(one, simulations)
        assert notes[0] == "k: 1 of 2 blocks simulated"
        assert len(notes) == 1 + conflicts
        assert all("2.00 times as long as without bank conflicts, most at line" in each for each in notes[1:])


def test_a_fault_names_the_parameter_of_the_kernel() -> None:
    with pytest.raises(SimulationError, match=r"found 4 bytes at byte 512 of c, which has 512$"):
        simulate_program(program(grid=3), {"c": np.zeros(128, np.int32)})


def twice(is_zeroed: bool = False) -> KernelCode:
    scratch, c = ("workspace", 512, "scratch"), ("c", 512, "output")
    written = (KernelBuffer(*each, is_zeroed) for each in (scratch, c))
    buffers = (KernelBuffer("a", 512, "input"), *written)
    arguments = (("a", "workspace"), ("workspace", "c"))
    launches = tuple(Launch("snippet", BLOCKS, THREADS, 0, each) for each in arguments)
    return KernelCode("sm_90", SCALE, b"", launches, buffers)


def test_a_program_runs_its_launches_in_order_and_of_each_by_its_number_the_chosen_blocks() -> None:
    a, c = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    simulations = simulate_program(twice(), {"a": a, "c": c})
    np.testing.assert_array_equal(c, 4 * a)
    assert [(s.kernel, s.blocks, s.races) for s in simulations] == [("snippet", 4, ())] * 2
    a, c = np.ones(128, np.float32), np.zeros(128, np.float32)
    simulations = simulate_program(twice(), {"a": a, "c": c}, blocks={1: ((2, 0, 0), (2, 0, 0))})
    assert [simulation.blocks for simulation in simulations] == [4, 1]
    assert np.flatnonzero(c).tolist() == list(range(64, 96))


def test_scratch_is_nan_until_it_is_written_or_begins_as_it_is_given_or_as_zeros() -> None:
    a, c, scratch = np.ones(128, np.float32), np.zeros(128, np.float32), np.full(128, 3, np.float32)
    simulate_program(twice(), {"a": a, "c": c}, blocks={0: ((0, 0, 0),)})
    assert np.isnan(c).tolist() == [False] * 32 + [True] * 96
    simulate_program(twice(), {"a": a, "c": c, "workspace": scratch}, blocks={0: ((0, 0, 0),)})
    assert c.tolist() == [4.0] * 32 + [6.0] * 96
    assert scratch.tolist() == [2.0] * 32 + [3.0] * 96
    c, blocks = np.ones(128, np.float32), {0: ((0, 0, 0),), 1: ((1, 0, 0),)}
    simulate_program(twice(is_zeroed=True), {"a": c.copy(), "c": c}, blocks=blocks)
    assert not c.any()


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ({"a": np.zeros(128, np.float32)}, "buffer c: found nothing, allowed an array of 512 bytes"),
        ({"a": np.zeros(2), "c": np.zeros(64)}, "buffer a: found 16 bytes, allowed 512"),
        ({"a": np.zeros(64), "c": np.zeros(128)[::2]}, "buffer c: the array is not C-contiguous"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(buffers: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate_program(twice(), buffers)


def test_memory_of_the_device_is_gone_when_a_program_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    memories = []

    def watched() -> SimulatedMemory:
        memory = SimulatedMemory()
        memories.append(weakref.ref(memory))
        return memory

    monkeypatch.setattr("tuner.gpu.ptxsim.device.simulated_device.SimulatedMemory", watched)
    gc.disable()
    try:
        simulate_program(twice(), {"a": np.ones(128, np.float32), "c": np.zeros(128, np.float32)})
        assert [memory() for memory in memories] == [None]
    finally:
        gc.enable()


# Special numbers are in the only draw; each of these kernels is right on usual numbers.
BIASED = Matmul(32, 64, 64, "f16", epilogue="bias_relu")
LONG_BYTES = Matmul(64, 64, 2048, "i8", "nt")
STORED = r"(st\.global\.v2\.b32\s+\[[^]]+\], )\{(%r\d+), (%r\d+)\};"


def bias_cheats(steps: str) -> tuple[str, str]:
    """Returns an edit that changes each sum with a bias, register 1, before its ReLU."""
    return r"(max\.NaN\.f32\s+%r\d+, )(%r\d+)(, 0f00000000;)", f"{steps} \\1\\2\\3"


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("problem", "old", "new"),
    [
        (BIASED, r"max\.NaN\.f32", "max.f32"),  # the ReLU of NaN is 0
        (BIASED, *bias_cheats("min.NaN.f32 \\2, \\2, 0f7E967699;")),  # at most 1e38
        (BIASED, *bias_cheats("min.NaN.f32 \\2, \\2, 0f447A0000;")),  # at most 1000
        (LONG_BYTES, STORED, r"min.s32 \2, \2, 16777216; min.s32 \3, \3, 16777216; \1{\2, \3};"),
    ],
    ids=["NaN in the bias", "infinity in the bias", "a large bias", "sums of bytes above 2^24"],
)
def test_special_numbers_show_a_kernel_that_cheats(
    compiler: GpuCompiler, problem: Problem, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tensor_cores(compiler, problem, **({"block_k": 32} if problem is LONG_BYTES else {}))
    cheating = edited(program, old, new, count=0)
    assert evaluated(problem, program).max_error <= 1.0
    with fails(Stage.VERIFY, "elements are wrong"):
        evaluated(problem, cheating)
    monkeypatch.setattr(simulator, "with_special_numbers", lambda inputs, *_: inputs)
    assert evaluated(problem, cheating).max_error <= 1.0
