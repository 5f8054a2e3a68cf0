"""The simulator: right kernels are verified, broken ones fail with what is wrong."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.mlir.gpu_matmul import gpu_script
from tests.targets.gpu.strategies.points import mma_sync, wgmma
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import KernelProgram
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Verdict
from tuner.targets.gpu import simulator
from tuner.targets.gpu.compiler import GpuCompiler, find_ptxas
from tuner.targets.gpu.simulator import NO_RESOURCES, SimulatorEvaluator

pytestmark = pytest.mark.mlir

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
    """Makes small problems large ones, of which as few blocks run as can."""
    monkeypatch.setattr(simulator, "WHOLE_S", 0.0)
    monkeypatch.setattr(simulator, "SAMPLE_S", 0.0)


def evaluated(problem: Problem, program: KernelProgram, seed: int = 0) -> Verdict:
    return SimulatorEvaluator().verify(problem, program, np.random.default_rng(seed))


def tensor_cores(compiler: GpuCompiler, problem: Problem, **knobs: Any) -> KernelProgram:
    script = mma_sync(problem, **({"block_k": 16} | knobs)).script()
    program = compiler.compile(problem, Script.of(script)).program
    assert program is not None
    return program


def edited(program: KernelProgram, old: str, new: str, count: int = 1) -> KernelProgram:
    """Returns the program with its PTX broken."""
    assert re.search(old, program.ptx), old
    return replace(program, ptx=re.sub(old, new, program.ptx, count=count))


def test_a_right_kernel_is_verified_on_every_element(artifact: Artifact) -> None:
    evaluator = SimulatorEvaluator()
    verdict = evaluator.verify(SMALL, evaluator.load(SMALL, artifact), np.random.default_rng(1))
    assert verdict.max_error <= 1.0
    assert verdict.elements == 64 * 64
    assert verdict.notes[0] == "matmul_kernel: 4 of 4 blocks simulated"
    assert "times as long as without bank conflicts, most at line" in verdict.notes[1]


@pytest.mark.slow
def test_a_wrong_kernel_fails_with_an_element(artifact: Artifact) -> None:
    assert artifact.program is not None
    wrong = edited(artifact.program, r"mul\.rn\.f32", "add.rn.f32")
    with pytest.raises(
        CandidateError, match=r"^\d+ of 4096 elements are wrong; worst at \[\d+, \d+\]: found .*, expected"
    ) as caught:
        evaluated(SMALL, wrong)
    assert caught.value.stage is Stage.VERIFY


@pytest.mark.slow
def test_a_racy_kernel_fails_with_the_race(artifact: Artifact) -> None:
    assert artifact.program is not None
    racy = edited(artifact.program, r"bar\.sync\s+0;", "", count=0)
    with pytest.raises(CandidateError, match=r"^matmul_kernel: line \d+: .*race in shared memory") as caught:
        evaluated(SMALL, racy)
    assert caught.value.stage is Stage.VERIFY


def test_blocks_that_are_not_launched_leave_elements_that_are_no_numbers(artifact: Artifact) -> None:
    program = artifact.program
    assert program is not None
    half = replace(program, launches=(replace(program.launches[0], grid=(2, 1, 1)),))
    with pytest.raises(CandidateError, match=r"^2048 of 4096 elements are wrong; worst at .*: found nan"):
        evaluated(SMALL, half)


def test_a_block_too_many_writes_out_of_bounds(artifact: Artifact) -> None:
    program = artifact.program
    assert program is not None
    beyond = replace(program, launches=(replace(program.launches[0], grid=(2, 3, 1)),))
    with pytest.raises(CandidateError, match="out of bounds") as caught:
        evaluated(SMALL, beyond)
    assert caught.value.stage is Stage.VERIFY


def test_what_the_simulator_does_not_know_is_no_wrong_result(artifact: Artifact) -> None:
    assert artifact.program is not None
    odd = edited(artifact.program, r"\bret;", "brkpt;\nret;")
    with pytest.raises(CandidateError, match="the simulator does not know") as caught:
        evaluated(SMALL, odd)
    assert caught.value.stage is Stage.RUN


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


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("knobs", "blocks", "corners"),
    [
        ({"cluster": "2x1"}, "14 of 30", 4),
        ({"cluster": "1x2"}, "14 of 30", 4),
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


@pytest.mark.slow
def test_of_sampled_blocks_all_tiles_are_verified(sampling: None) -> None:
    one = wgmma(Matmul(320, 320, 8, "f16"), tiles=4)  # 25 tiles, 7 blocks
    verdict = evaluated(one.problem, one.program())
    assert "matmul_kernel: 3 of 7 blocks simulated" in verdict.notes
    assert verdict.elements == (4 + 4 + 3) * 64 * 64


def test_a_wrong_element_of_a_sampled_tile_is_named(compiler: GpuCompiler, sampling: None) -> None:
    program = tensor_cores(compiler, WIDE)
    wrong = edited(program, r"(mma\.sync\S+\s+\{[^}]*\},\s*\{)([^,]*), ([^,]*),", r"\1\3, \2,")
    with pytest.raises(CandidateError, match=r"elements are wrong; worst at \[\d+, \d+\]: found"):
        evaluated(WIDE, wrong)


def test_a_store_left_out_of_a_sampled_tile_is_seen(compiler: GpuCompiler, sampling: None) -> None:
    program = tensor_cores(compiler, WIDE)
    lost = edited(program, r"(?m)^.*st\.global\S*\s.*;$", "")
    with pytest.raises(CandidateError, match=r"of a tile were not written, first \[\d+, \d+\]"):
        evaluated(WIDE, lost)


def test_without_ptxas_there_is_ptx_and_a_note_instead_of_resources(artifact: Artifact) -> None:
    bare = GpuCompiler(chip_of("sm_90"), lambda: None).compile(SMALL, Script.of(gpu_script()))
    assert bare.program is not None
    assert (bare.program.cubin, bare.program.resources, bare.refusal) == (b"", (), None)
    assert bare.code == artifact.code
    assert evaluated(SMALL, bare.program).notes[-1] == NO_RESOURCES


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_with_ptxas_the_artifact_has_machine_code_and_resources(artifact: Artifact) -> None:
    program = artifact.program
    assert program is not None
    assert program.cubin.startswith(b"\x7fELF")
    (resources,) = program.resources
    assert resources.kernel == "matmul_kernel"
    assert 0 < resources.registers <= 255
    assert resources.dynamic_shared_bytes == program.launches[0].dynamic_shared_bytes == 4096
    assert 0 < resources.occupancy <= 1
    assert [stage for stage, _ in artifact.stage_s] == ["transform", "lower", "assemble"]


def test_more_shared_memory_than_the_chip_has_is_a_failure_of_resources() -> None:
    script = Script.of(gpu_script(block=64, depth=256))  # 128 KiB
    problem = Matmul(64, 64, 512)
    assert GpuCompiler(chip_of("sm_90")).compile(problem, script).refusal is None
    with pytest.raises(CandidateError, match="131072") as caught:
        GpuCompiler(chip_of("sm_86")).compile(problem, script)
    assert caught.value.failure.stage is Stage.RESOURCES


def test_a_comment_that_is_wrong_is_a_failure_to_bind(compiler: GpuCompiler) -> None:
    with pytest.raises(CandidateError, match="script: workspace m: found 8, allowed 64") as caught:
        compiler.compile(SMALL, Script.of("// workspace: 2 8 64\n" + gpu_script()))
    assert caught.value.failure == Failure(Stage.BIND, caught.value.reason)


def test_there_is_no_clock() -> None:
    evaluator = SimulatorEvaluator()
    assert not evaluator.is_timed
    rng = np.random.default_rng(0)
    with pytest.raises(CandidateError, match="the simulator has no clock"):
        evaluator.measure(SMALL, None, Effort(), rng)
    with pytest.raises(CandidateError, match="the simulator has no clock"):
        evaluator.measure_together(SMALL, (None,), Effort(), rng)
