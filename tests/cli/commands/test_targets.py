"""The real thing, small: a GPU matmul tuned, verified, shown and exported without a GPU."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Tuner, counts, require, require_fields
from tests.support.stub_driver import stub_library
from tests.tuning import fakes
from tuner.core.candidate import CPU, TargetName
from tuner.core.interfaces import AbstractRunner
from tuner.core.machine import Processors
from tuner.core.matmul import Matmul
from tuner.core.processors import PROCESSORS
from tuner.gpu.target.compiler import find_ptxas
from tuner.runtime.cpu.host import LIMIT_VARIABLE, describe_machine, offers
from tuner.runtime.workers.runner import RunnerOrder, TrialRunner
from tuner.targets.cpu import compiler as described_compiler
from tuner.targets.cpu import evaluator
from tuner.targets.cpu import target as cpu_target
from tuner.targets.cpu.compiler import CrossCompiler
from tuner.targets.cpu.evaluator import CrossCompiledEvaluator
from tuner.targets.cpu.target import Cpu, CrossCpu, host_machine
from tuner.targets.registry import TARGETS, real_backends
from tuner.targets.target import RunnerSettings

pytestmark = pytest.mark.mlir

ROOT = Path(__file__).parents[3]
ZNVER3 = PROCESSORS["znver3"]
NEEDS_PTXAS = pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")


def unwrapped(script: Path) -> str:
    """Returns a script's text with each broken line of its header as one."""
    return re.sub(r"\n// {2,}", " ", script.read_text())


def run(database: Path, command: str, **variables: str) -> Done:
    environment = os.environ | {"TUNER_DB": str(database)} | variables
    words = [sys.executable, "-m", "tuner", *command.split()]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    tuner = Tuner(tmp_path_factory.mktemp("gpu") / "results.db", real_backends())
    options = "--dtype f16 --target simulator --chip sm_90 --trials 2 --workers 1 --json"
    assert tuner.done(f"tune matmul 64x48x32 {options}").json["counts"] == counts(proposed=2, verified=2)
    return tuner


@pytest.mark.slow
def test_verified_trials_are_reported_exported_checked_and_applied(tuned: Tuner, tmp_path: Path) -> None:
    first, second = tuned("history --status verified --json").json
    assert first["target"] == second["target"] == "simulator:sm_90"
    require_fields(first, machine="simulator sm_90", median_s=None, gflop_per_s=None)
    script = tmp_path / "verified.mlir"
    tuned.done("export --trial 1 -o", str(script))
    require_fields(tuned.done("check", str(script), "--json").json, correct=True, median_s=None)
    payload = tuned("apply", str(script), str(tmp_path / "verified.source.mlir"))
    assert "gpu.launch" in payload.out, payload.err


@pytest.mark.slow
@NEEDS_PTXAS
def test_a_verified_trial_is_exported_as_ptx_and_cubin(tuned: Tuner, tmp_path: Path) -> None:
    require(tuned("export --trial 1 --format ptx").out, ".target sm_90", "mma.sync")
    cubin = tmp_path / "k.cubin"
    tuned.done("export --trial 1 --format cubin -o", str(cubin))
    assert cubin.read_bytes().startswith(b"\x7fELF")
    (kernel, *_) = tuned("show 1 --json").json["resources"]
    assert kernel["registers"] > 0


@pytest.mark.skipif(TARGETS["cuda"].status().is_available, reason="there is a GPU")
@pytest.mark.parametrize("command", ["tune matmul 64x48x32 --dtype f16", "tune program.mlir"])
def test_cuda_without_a_driver_is_refused_before_anything_is_compiled(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.mlir").write_text("module {}\n")
    tuner = Tuner(tmp_path / "results.db", real_backends())
    refused = tuner.refused(f"{command} --target cuda:sm_80")
    assert refused.startswith("error: target cuda:sm_80: nothing runs here: no CUDA driver: libcuda.so.1 ")
    hint = "to verify without a GPU, and carry the result to one by tuner bundle export"
    assert refused.endswith(f"\nhint: {hint}: tuner {command} --target simulator:sm_80\n")
    assert not tuner.database.exists()
    tuner.done("space matmul 64x48x32 --target cuda:sm_80")


@pytest.mark.slow
def test_a_gpu_is_tuned_for_by_default_and_one_that_does_nothing_is_found_out(tmp_path: Path) -> None:
    """The driver is a stand-in that launches nothing: all else is as on a machine with a GPU."""
    gpu = {"LD_LIBRARY_PATH": str(stub_library().parent)}
    database = tmp_path / "results.db"
    (_, cuda, *_) = run(database, "targets --json", **gpu).json
    require_fields(cuda, name="cuda", available=True)
    assert cuda["reason"].startswith("stub GPU 0, sm_90, 132 multiprocessors, ")
    done = run(database, "tune matmul 64x48x32 --dtype f16 --trials 1 --workers 1", **gpu)
    assert done.code == 1
    wrong = "1 x verify: 3072 of 3072 elements are wrong; worst at [0, 0]: found nan"
    require(done.err, wrong, "baseline: not measured: ")
    (trial,) = Tuner(database, real_backends())("history --json").json
    require_fields(trial, target="cuda:sm_90a", machine="stub GPU 0", stage="verify")
    refused = run(database, "tune matmul 64x48x32 --target cuda:sm_80 --trials 1", **gpu)
    assert refused.code == 2
    assert (
        "cuda:sm_80: the GPU here is sm_90a\nhint: --target cuda:sm_90a, or simulator:sm_80\n" in refused.err
    )


# ``--cpu NAME`` of a processor that this one does not offer: what is said of its code, and what is refused.

SMALL = "tune matmul 16x32x16 --trials 2 --seed 1"


def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
    compiler = CrossCompiler(order.target.detail)
    return TrialRunner.local(order, compiler, CrossCompiledEvaluator(how.threads), how.seed)


@pytest.fixture
def crossed(tmp_path: Path) -> Tuner:
    other = fakes.changed(CrossCpu(), runner=runner)
    kind = fakes.changed(Cpu(), cross_compiled=other, of_detail=lambda detail: other if detail else Cpu())
    two = Processors(present=2, allowed=2)
    backends = fakes.changed(
        real_backends(), targets={"cpu": kind}, machine=host_machine, processors=lambda: two
    )
    return Tuner(tmp_path / "results.db", backends)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> str:
    """Pretends that this processor has vectors alone; gives its name."""
    machine = replace(describe_machine(), has_bf16=False, has_vnni=False, has_amx_bf16=False)
    machine = replace(machine, has_amx_int8=False)
    for module in (described_compiler, evaluator):
        monkeypatch.setattr(module, "describe_machine", lambda: machine)
    return machine.processor


def test_what_runs_here_is_verified_and_no_result_of_this_machine(crossed: Tuner, tmp_path: Path) -> None:
    said = crossed.done(f"{SMALL} --cpu haswell").out
    why = "times     none: code for another processor is not timed, nothing is ranked"
    require(said, "verified  2 of 2 trials of run 1", why, without="compiled  ")
    assert "for haswell (described, avx2, caches 32K/256K/30M)" in " ".join(said.split())
    file = tmp_path / "best.mlir"
    crossed.done("export --trial 1 -o", str(file))
    exported = ": verified, not timed; baseline not measured"
    require(unwrapped(file), exported, " on cpu:haswell, 1 thread, ")
    checked = crossed("check", str(file))
    assert (checked.code, checked.out) == (0, "correct; 512 elements verified, nothing timed\n")
    for target, message in (("cpu", "nothing measured"), ("cpu:haswell", "nothing measured, only verified")):
        assert message in crossed.refused("export matmul 16x32x16 --target", target)
    crossed.done("tune --resume 1 --trials 3")


@pytest.mark.slow
def test_cpu_is_short_for_a_target_that_constraints_ask(crossed: Tuner) -> None:
    crossed.done(f"{SMALL} --cpu znver3 --target cpu")
    crossed.done(f"{SMALL} --target cpu:znver3")
    assert {each["target"] for each in crossed("history --json").json} == {"cpu:znver3"}
    space = "space matmul 64x64x64 --dtype bf16 --json --cpu"
    without, offering = (crossed(space, cpu).json["rejected"] for cpu in ("icelake-server", "znver4"))
    (constraint,) = {each for each in offering if each.startswith("dots <= max(has_bf16")}
    assert without[constraint] > 0
    assert offering[constraint] == 0


@pytest.mark.slow
def test_tiles_are_verified_by_vectors(crossed: Tuner, plain: str) -> None:
    words = f"{SMALL} --dtype bf16 --strategy matmul_cpu_amx --cpu sapphirerapids --json"
    assert crossed(words).json["counts"] == counts(proposed=2, verified=2)
    assert "with vectors in place of AMX tiles" in " ".join(crossed("show 1").out.split())


def test_what_cannot_run_here_is_compiled_only(crossed: Tuner, plain: str, tmp_path: Path) -> None:
    words = f"{SMALL} --dtype bf16 --strategy matmul_cpu_pairs --cpu znver4"
    said = " ".join(crossed.done(words).out.split())
    why = "compiled 2 only: their code cannot run on this processor, nothing of them was verified"
    require(said, "verified 0 of 2 trials of run 1", why, "2 trials: 2 compiled only, 0 failed")
    assert "compiled only" in crossed("history").out
    file = tmp_path / "best.mlir"
    crossed.done("export --trial 1 -o", str(file))
    why = f"compiled only, nothing was verified: {plain} has no avx512-bf16"
    exported = f": no time, not verified: {why}; baseline not measured"
    require(unwrapped(file), exported, "Needs avx512-bf16.")
    checked = crossed("check", str(file))
    assert (checked.code, " ".join(checked.out.split())) == (3, why)
    require_fields(crossed("check --json", str(file)).json, correct=False, finding="compiled only")
    again = crossed(f"{words} --json").json["counts"]
    require_fields(again, compiled=2, reused=0)  # another machine might verify them


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--cpu zen4", "error: cpu: found 'zen4', allowed x86-64-v3, x86-64-v4, haswell, "),
        ("--cpu znver9", "hint: did you mean znver"),
        ("--cpu haswell --target cuda", "--cpu haswell cannot be combined with --target cuda"),
        ("--cpu haswell --target cpu:znver3", "--cpu haswell cannot be combined with --target"),
        ("--target cpu:", "error: cpu: found '', allowed x86-64-v3, "),
        ("--cpu haswell --chip sm_90", "error: chip 'sm_90' cannot be combined with target"),
        ("--cpu haswell --threads 3", "threads: found 3, allowed up to 2, the processors of this"),
        ("--cpu haswell --sampler tpe", "sampler: found 'tpe', allowed random, exhaustive"),
        ("--cpu haswell --strategy matmul_cpu_amx --dtype i8", "error: "),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(crossed: Tuner, options: str, message: str) -> None:
    assert message in crossed.refused(f"{SMALL} {options}")


def test_children_verify_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_target, "offers", lambda processor: False)
    crossed = Tuner(tmp_path / "results.db", real_backends())
    done = crossed.done(f"{SMALL} --cpu skylake-avx512 --workers 1")
    assert "verified  2 of 2 trials of run 1" in done.out


@pytest.mark.skipif(not offers(ZNVER3), reason="needs AVX2 and FMA")
def test_a_processor_that_this_one_offers_is_timed_as_that_one(tmp_path: Path) -> None:
    """Code, search space and library are of a processor without what this one has more."""
    here = Tuner(tmp_path / "results.db", real_backends())
    done = here.done("tune matmul 16x32x16 --cpu znver3 --trials 1 --workers 1 --json").json
    require_fields(done, target="cpu:znver3", counts=counts(proposed=1, measured=1))
    assert re.search(r" as znver3 \(.*avx2, caches \d+K/\d+K/", done["machine"])
    assert done["best"]["baseline"]["name"].endswith(" Haswell")
    limits = Cpu("", ZNVER3.name).children(TargetName(CPU, ZNVER3.name), Matmul(16, 32, 16), 1).environment
    assert {(LIMIT_VARIABLE, "znver3"), ("OPENBLAS_CORETYPE", "Haswell")} <= set(limits)
    assert "times x86-64-v3, " in here.done("targets").out
    program = here.refused("run --cpu znver3", str(ROOT / "examples" / "two_matmuls.mlir"))
    require(program, "found cpu:znver3, allowed for programs: cpu", "hint: TUNER_CPU=znver3 in the env")
