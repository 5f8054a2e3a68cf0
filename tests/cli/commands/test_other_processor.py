"""``--cpu NAME``: code for another x86 processor, what is said of it, and what is refused."""

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.core.interfaces import AbstractRunner
from tuner.core.processors import Processors
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.workers.runner import LocalRunner, RunnerOrder
from tuner.targets.cpu import compiler as described_compiler
from tuner.targets.cpu import evaluator
from tuner.targets.cpu.compiler import CrossCompiler
from tuner.targets.cpu.evaluator import CrossCompiledEvaluator
from tuner.targets.cpu.target import KIND, host_machine
from tuner.targets.interface import RunnerSettings
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

SMALL = ("tune", "matmul", "16x32x16", "--trials", "2", "--seed", "1")


def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
    """Returns a runner without child processes."""
    compiler = CrossCompiler(order.target.detail)
    return LocalRunner(order, compiler, CrossCompiledEvaluator(how.threads), how.seed)


@pytest.fixture
def tuner(tmp_path: Path) -> Tuner:
    assert KIND.cross_compiled is not None
    cross_compiled = fakes.changed_kind(KIND.cross_compiled, runner=runner)
    backends = dataclasses.replace(
        real_backends(),
        kinds={"cpu": replace(KIND, cross_compiled=cross_compiled)},
        machine=host_machine,
        processors=lambda: Processors(present=2, allowed=2),
    )
    return Tuner(tmp_path / "results.db", backends)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> str:
    """Pretends that this processor has vectors alone; gives its name."""
    machine = replace(
        describe_machine(), has_bf16=False, has_vnni=False, has_amx_bf16=False, has_amx_int8=False
    )
    for module in (described_compiler, evaluator, evaluator):
        monkeypatch.setattr(module, "describe_machine", lambda: machine)
    return machine.processor


@pytest.mark.slow
def test_what_runs_here_is_verified_and_not_timed(tuner: Tuner, tmp_path: Path) -> None:
    done = tuner(*SMALL, "--cpu", "haswell")
    assert done.code == 0, done.err
    assert "verified  2 of 2 trials of run 1" in done.out
    assert "for haswell (described, avx2, caches 32K/256K/30M)" in " ".join(done.out.split())
    assert "times     none: code for another processor is not timed, nothing is ranked" in done.out
    assert "compiled  " not in done.out
    file = tmp_path / "best.mlir"
    assert tuner("export", "--trial", "1", "-o", str(file)).code == 0
    assert "// time      none: verified, not timed\n" in file.read_text()
    assert "// target    cpu:haswell, 1 thread\n" in file.read_text()
    checked = tuner("check", str(file))
    assert (checked.code, checked.out) == (0, "correct; 512 elements verified, nothing timed\n")


@pytest.mark.slow
def test_cpu_is_short_for_a_target(tuner: Tuner) -> None:
    assert tuner(*SMALL, "--cpu", "znver3", "--target", "cpu").code == 0
    assert tuner(*SMALL, "--target", "cpu:znver3").code == 0
    assert {each["target"] for each in tuner("history", "--json").json} == {"cpu:znver3"}


@pytest.mark.slow
def test_constraints_ask_the_other_processor(tuner: Tuner) -> None:
    space = ("space", "matmul", "64x64x64", "--dtype", "bf16", "--json")
    rejected = {name: tuner(*space, "--cpu", name).json["rejected"] for name in ("icelake-server", "znver4")}
    (constraint,) = {each for each in rejected["znver4"] if each.endswith("dots <= has_bf16")}
    assert rejected["icelake-server"][constraint] > 0
    assert rejected["znver4"][constraint] == 0


@pytest.mark.slow
def test_tiles_are_verified_by_vectors(tuner: Tuner, plain: str) -> None:
    words = (*SMALL, "--dtype", "bf16", "--strategy", "matmul_cpu_amx", "--cpu", "sapphirerapids")
    document = tuner(*words, "--json").json
    assert document["counts"] == {
        "proposed": 2,
        "measured": 0,
        "verified": 2,
        "failed": 0,
        "reused": 0,
        "compiled": 0,
    }
    assert "with vectors in place of AMX tiles" in " ".join(tuner("show", "1").out.split())


@pytest.mark.slow
def test_what_cannot_run_here_is_compiled_only_and_said_to_be(
    tuner: Tuner, plain: str, tmp_path: Path
) -> None:
    words = (*SMALL, "--dtype", "bf16", "--strategy", "matmul_cpu_pairs", "--cpu", "znver4")
    done = tuner(*words)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "verified 0 of 2 trials of run 1" in said
    assert "compiled 2 only: their code cannot run on this processor, nothing of them was verified" in said
    assert "2 trials: 2 compiled only, 0 failed" in said
    assert "compiled only" in tuner("history").out
    file = tmp_path / "best.mlir"
    assert tuner("export", "--trial", "1", "-o", str(file)).code == 0
    why = f"compiled only, nothing was verified: {plain} has no avx512-bf16"
    assert f"// time      none: {why}\n" in file.read_text()
    assert "// needs     avx512-bf16\n" in file.read_text()
    checked = tuner("check", str(file))
    assert (checked.code, " ".join(checked.out.split())) == (3, why)
    document = tuner("check", str(file), "--json").json
    assert (document["correct"], document["finding"]) == (False, "compiled only")
    again = tuner(*words, "--json").json["counts"]
    assert (again["compiled"], again["reused"]) == (2, 0)  # another machine might verify them


@pytest.mark.slow
def test_results_for_another_processor_are_none_of_this_machine(tuner: Tuner) -> None:
    assert tuner(*SMALL, "--cpu", "haswell").code == 0
    said = tuner.refused("export", "matmul", "16x32x16", "--target", "cpu")
    assert "nothing measured" in said
    said = tuner.refused("export", "matmul", "16x32x16", "--target", "cpu:haswell")
    assert "nothing measured, only verified" in said
    assert tuner("tune", "--resume", "1", "--trials", "3").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cpu", "zen4"), "error: cpu: found 'zen4', allowed haswell, skylake-avx512, "),
        (("--cpu", "znver9"), "hint: did you mean znver"),
        (("--cpu", "haswell", "--target", "cuda"), "--cpu haswell cannot be combined with --target cuda"),
        (("--cpu", "haswell", "--target", "cpu:znver3"), "--cpu haswell cannot be combined with --target"),
        (("--target", "cpu:"), "error: cpu: found '', allowed haswell, "),
        (("--cpu", "haswell", "--chip", "sm_90"), "error: chip 'sm_90' cannot be combined with target"),
        (("--cpu", "haswell", "--threads", "3"), "threads: found 3, allowed up to 2, the processors of this"),
        (("--cpu", "haswell", "--sampler", "tpe"), "sampler: found 'tpe', allowed random, exhaustive"),
        (("--cpu", "haswell", "--strategy", "matmul_cpu_amx", "--dtype", "i8"), "error: "),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(tuner: Tuner, options: tuple[str, ...], message: str) -> None:
    assert message in tuner.refused(*SMALL, *options)


@pytest.mark.slow
def test_children_verify_it_too(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_backends())
    done = tuner(*SMALL, "--cpu", "skylake-avx512", "--workers", "1")
    assert done.code == 0, done.err
    assert "verified  2 of 2 trials of run 1" in done.out
