"""What may be asked of a run, and the settings made of it."""

import dataclasses
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import pytest

from tests.space.recorded.values import write_recording
from tests.support.run_differences import differences
from tests.tuning import fakes
from tests.tuning.fakes import MACHINE, present
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.machine import Processors
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.problem_text import tune_command
from tuner.core.queries import DatabaseInfo, TaskQuery, nothing_matches
from tuner.core.requests import FleetRequest, RunRequest
from tuner.core.runs import Baseline, ChosenStrategy, LibraryTime, RunSettings
from tuner.db.store import Store
from tuner.elsewhere.fleet.runner import FleetTarget
from tuner.runtime.timing_lock import LockWait
from tuner.search.samplers import SAMPLERS
from tuner.space.file.yaml import default_space_file
from tuner.targets.backends import Backends, named_target, require_runs_here, resolve_target
from tuner.targets.registry import TARGETS, real_backends
from tuner.targets.target import BaselineChoice, Target, TargetStatus
from tuner.tuning.events import Event, Interruption, TrialDone
from tuner.tuning.request import GIB, RunLimit, require_memory, require_threads, require_workers, run_settings
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun


@pytest.mark.parametrize("sizes", [(2**31 - 1, 2**31 - 1, 2**31 - 1), (50_000, 50_000, 1), (1, 1, 2**31 - 1)])
def test_an_enormous_problem_is_refused_with_both_sizes(sizes: tuple[int, int, int]) -> None:
    """Where the memory is unknown, as of another tuner's recording, nothing is allocated."""
    require_memory(Matmul(512, 512, 512), MACHINE)
    require_memory(Matmul(*sizes), dataclasses.replace(MACHINE, memory_bytes=0))
    with pytest.raises(UsageError, match=r"reference need [\d.]+ GiB, available 8\.0 GiB"):
        require_memory(Matmul(*sizes), dataclasses.replace(MACHINE, memory_bytes=8 * GIB))


def test_more_workers_than_the_memory_holds_and_more_threads_than_processors_are_refused() -> None:
    machine = dataclasses.replace(MACHINE, memory_bytes=2 * GIB)
    require_workers(10, machine)
    require_workers(10**6, dataclasses.replace(machine, memory_bytes=0))
    with pytest.raises(UsageError, match="workers: found 11, allowed 1 to 10: each is a process"):
        require_workers(11, machine)
    machine = dataclasses.replace(MACHINE, name="eight", logical_cores=8, chip="")
    eight = Processors(present=8, allowed=8)
    require_threads(8, machine, eight)
    require_threads(9, dataclasses.replace(machine, logical_cores=0), eight)
    require_threads(9, dataclasses.replace(machine, chip="sm_90"), Processors(8, 1))
    with pytest.raises(UsageError, match="threads: found 9, allowed up to 8, the processors of eight"):
        require_threads(9, machine, eight)


@pytest.mark.parametrize(
    ("processors", "message"),
    [
        (Processors(8, 2), r"found 4, allowed up to 2: the affinity mask .*taskset.* allows 2 of 8"),
        (Processors(8, 8, 2.5), r"found 4, allowed up to 2: the quota .*\(cpu.max\) is 2.5 processors"),
        (Processors(8, 3, 2.0), r"found 4, allowed up to 2: the quota of the control group"),
        (Processors(8, 2, 4.0), r"found 4, allowed up to 2: the affinity mask"),
        (Processors(1, 1, 0.5), r"found 4, allowed up to 1, the processors of"),
    ],
)
def test_threads_run_on_processors_that_the_process_may_use(processors: Processors, message: str) -> None:
    machine = dataclasses.replace(MACHINE, logical_cores=processors.allowed)
    require_threads(processors.usable, machine, processors)
    with pytest.raises(UsageError, match=f"^threads: {message}") as raised:
        require_threads(4, machine, processors)
    assert "\n" not in str(raised.value)


# A run that is extended ends with the trials of one that was started with the larger limit.

SHORT, LONG = 5, 12


def extended(store: Store, **limit: float) -> TunedRun:
    return resume(1, fakes.backends(), store, Interruption(), limit=RunLimit(**limit))  # type: ignore[arg-type]


def three_tried(store: Store) -> TunedRun:
    """Returns a run of x = 0, 0, 1: the best, x = 7, comes later."""
    return fakes.tune(store, trials=3, sampler="exhaustive")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "workers"), [*((name, 1) for name in SAMPLERS), ("random", 3), ("tpe", 3)]
)
def test_an_extended_run_has_the_trials_of_a_longer_one(tmp_path: Path, sampler: str, workers: int) -> None:
    with Store.open(str(tmp_path / "whole.db")) as whole, Store.open(str(tmp_path / "extended.db")) as store:
        expected = fakes.tune(whole, trials=LONG, sampler=sampler, workers=workers)
        fakes.tune(store, trials=SHORT, sampler=sampler, workers=workers)
        done = extended(store, trials=LONG)
        assert differences(fakes.trials_of(whole), fakes.trials_of(store)) == ()
        assert done.run.settings == expected.run.settings
        assert (done.run.status, done.counts) == ("done", expected.counts)
        assert present(done.best).number == present(expected.best).number


def test_the_best_of_all_trials_are_timed_again_and_only_that_round_answers(store: Store) -> None:
    three_tried(store)
    done = extended(store, trials=20)
    assert [(each.of_trials, each.is_answering) for each in done.rounds] == [(3, False), (20, True)]
    assert present(done.best).knobs["x"] == 7
    assert present(done.best).final is not None
    again = resume(1, fakes.backends(), store, Interruption(), retime=True)
    assert [each.is_answering for each in again.rounds] == [False, True, False]  # the earlier of quiet ones


@pytest.mark.slow
def test_an_extension_that_is_interrupted_keeps_the_earlier_answer_until_it_is_done(store: Store) -> None:
    before, interruption = three_tried(store), Interruption()

    def interrupt(event: Event) -> None:
        if isinstance(event, TrialDone) and event.number == 9:
            interruption.ask()

    cut = resume(1, fakes.backends(), store, interruption, interrupt, limit=RunLimit(trials=20))
    assert cut.is_interrupted
    assert 3 < cut.counts.proposed < 20
    assert cut.best == before.best
    done = resume(1, fakes.backends(), store, Interruption())
    assert (done.counts.proposed, done.run.settings.trials) == (20, 20)
    assert [each.of_trials for each in done.rounds] == [3, 20]
    assert present(done.best).knobs["x"] == 7


@pytest.mark.slow
def test_with_all_trials_only_the_round_is_timed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill between the last trial and the end of the final re-measurement."""
    three_tried(store)
    with monkeypatch.context() as patch:
        patch.setattr(store, "add_round", lambda *_text: None)
        extended(store, trials=6)
    store.finish_run(1, "interrupted", 0.0)
    assert [each.of_trials for each in resume(1, fakes.backends(), store, Interruption()).rounds] == [3, 6]


@pytest.mark.slow
def test_a_limit_of_time_counts_the_search_alone(store: Store) -> None:
    three_tried(store)
    store.finish_run(1, "done", 1000.0)  # as long as a final re-measurement may have taken
    done = extended(store, budget_s=600.0)
    assert done.counts.proposed == 20  # the whole space
    assert (done.run.settings.trials, done.run.settings.budget_s) == (None, 600.0)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"trials": 4}, "^trials: found 4, but run 1 has 5 trials already$"),
        ({"budget_s": 1e-9}, r"^budget: found 1e-09 s, but run 1 has searched for .* s already$"),
    ],
)
def test_a_limit_that_was_passed_is_refused_changing_nothing(store: Store, limit: Any, message: str) -> None:
    before = fakes.tune(store, trials=SHORT)
    with pytest.raises(UsageError, match=message):
        extended(store, **limit)
    assert (store.run(1), store.rounds(1)) == (before.run, before.rounds)
    assert extended(store, trials=SHORT).rounds == before.rounds  # reached: nothing is timed again


@pytest.mark.slow
def test_a_pruned_run_is_not_extended(store: Store) -> None:
    fakes.tune(store, trials=20, sampler="exhaustive")
    assert store.prune().trials > 0
    with pytest.raises(UsageError, match=r"^run 1: some of its trials were pruned; start a new run$"):
        extended(store, trials=30)
    before = fakes.trials_of(store)
    with pytest.raises(UsageError, match="were pruned"):
        resume(1, fakes.backends(), store, Interruption(), retime=True)
    assert fakes.trials_of(store) == before


@pytest.mark.parametrize(("trials", "budget_s"), [(0, None), (True, None), (None, 0.0), (None, -1.0)])
def test_a_limit_is_a_number_or_a_time(trials: int | None, budget_s: float | None) -> None:
    with pytest.raises(UsageError, match=r"^(trials|budget): found"):
        RunLimit.of(trials, budget_s)
    assert RunLimit.of(None, None) is None


# Settings of a run: defaults, targets, what is refused.

PROBLEM = Matmul(8, 8, 8)


def settings(**options: object) -> RunSettings:
    return run_settings(RunRequest(PROBLEM, **options), fakes.backends())  # type: ignore[arg-type]


def test_defaults_are_filled_in_and_files_may_be_named_by_texts() -> None:
    made = settings()
    assert (made.trials, made.budget_s, made.threads, made.workers) == (100, None, 1, 1)
    assert made.target == TargetName("fake")
    assert made.space_yaml == default_space_file().read_text()
    assert ChosenStrategy("matmul_cpu_packed") in made.strategies
    assert settings(budget_s=5.0).trials is None
    named = settings(warm_files=("a.t4.json",), space=str(default_space_file()))
    assert named.warm_files == (str(Path("a.t4.json").absolute()),)
    assert RunRequest(PROBLEM).trials_limit == 100
    assert RunRequest(PROBLEM, budget_s=5.0).trials_limit is None
    assert RunRequest(PROBLEM, trials=3, budget_s=5.0).trials_limit == 3
    assert RunRequest(PROBLEM).workers_on(MACHINE) == MACHINE.physical_cores
    assert RunRequest(PROBLEM, workers=3).workers_on(MACHINE) == 3
    strategies = (Path("mine.mlir"), "matmul_cpu_packed")
    request = RunRequest(PROBLEM, strategies=strategies, warm_files=("a.t4.json", Path("b.t4.json")))
    assert request.warm_paths == (str(Path("a.t4.json").absolute()), str(Path("b.t4.json").absolute()))
    assert request.strategy_text == ("mine.mlir", "matmul_cpu_packed")


def test_without_times_the_sampler_needs_none_and_what_processors_do_not_take_is_refused() -> None:
    untimed = TargetStatus("simulator", True, "no clock", is_timed=False)
    backends = fakes.backends((untimed, TargetStatus("fake", True, "for tests")))

    def made(target: str, sampler: str | None = None) -> RunSettings:
        return run_settings(RunRequest(Matmul(8, 8, 8, "f16"), target, sampler=sampler), backends)

    assert made("simulator").sampler == "random"
    assert made("simulator").target == TargetName("simulator", "sm_90")
    assert (made("simulator", "exhaustive").sampler, made("fake").sampler) == ("exhaustive", "tpe")
    allowed = "sampler: found 'tpe', allowed random, exhaustive: target simulator"
    with pytest.raises(UsageError, match=allowed):
        made("simulator", "tpe")
    backends = fakes.backends((TargetStatus("cpu", True, "here"),))
    with pytest.raises(UsageError, match="math: found 'tf32', allowed ieee, bf16x6 on"):
        run_settings(RunRequest(Matmul(8, 8, 8, "tf32")), backends)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({name: 0}, f"{name}: found 0, allowed 1 or more") for name in ("threads", "trials", "workers")),
        *(
            ({name: value}, f"{name}: found {re.escape(repr(value))}, allowed an integer")
            for name in ("trials", "workers", "threads", "seed")
            for value in (2.5, "5", True)
        ),
        *(
            ({"budget_s": value}, "budget: found .*, allowed seconds, more than 0")
            for value in (0, -1.0, float("nan"), float("inf"), "5s")
        ),
        ({"seed": -1}, "seed: found -1, allowed 0 or more"),
        ({"seed": 2**63}, "seed: found 9223372036854775808, allowed 0 to 9223372036854775807"),
    ],
)
def test_a_request_outside_what_is_allowed_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RunRequest(PROBLEM, **options)


BATCH_PROBLEM = MatmulProblem("batch_matmul", (4, 8, 16), "f16", "nt", "bias_relu", "f16", 2)
OF_BATCHES, ON_TWO = "tuner tune batch_matmul", "--threads 2 --target simulator:sm_90"
OPTIONS = f"--dtype f16 --layout nt --epilogue bias_relu --output-dtype f16 {ON_TWO}"


@pytest.mark.parametrize(
    ("task", "strategy", "command"),
    [
        (TaskQuery(), None, "tuner tune matmul 512x512x512"),
        (TaskQuery(shape="8x8x8", dtype="f32", threads=1), None, "tuner tune matmul 8x8x8"),
        (
            TaskQuery.of(BATCH_PROBLEM, target="simulator:sm_90", threads=2),
            None,
            f"{OF_BATCHES} 2x4x8x16 {OPTIONS}",
        ),
        (
            TaskQuery.of(Matmul(1, 64, 64, weights="i4", group_size=32, zero_points=True)),
            None,
            "tuner tune matmul 1x64x64 --weights i4-g32-f16-zp",
        ),
        (
            TaskQuery.of(Matmul(4, 64, 32, "bf16", "nt", weights="constant"), target="cpu"),
            None,
            "tuner tune matmul 4x64x32 --constant b --dtype bf16 --layout nt --target cpu",
        ),
        (TaskQuery("batch_matmul"), "my tiles", f"{OF_BATCHES} 8x512x512x512 --strategy 'my tiles'"),
    ],
)
def test_advice_leaves_out_what_is_usual(task: TaskQuery, strategy: str | None, command: str) -> None:
    assert tune_command(task, strategy) == command


@pytest.mark.parametrize(
    ("listed", "runs", "text"),
    [
        ("run", 0, "no history yet in sqlite:///x.db\nhint: tuner tune matmul 8x8x8 --dtype f64"),
        ("run", 1, "no run matches; 1 run without conditions\nhint: tuner history --runs"),
        ("trial", 1, "no trial matches; 2 trials without conditions\nhint: tuner history"),
    ],
)
def test_where_nothing_matches_a_next_command_is_advised(listed: str, runs: int, text: str) -> None:
    command = tune_command(TaskQuery(shape="8x8x8", dtype="f64"))
    assert nothing_matches(command, listed, DatabaseInfo("sqlite:///x.db", "0001", runs, trials=2)) == text


# A run is compared with the baseline that its user chose, and so is what continues it.

FAST = LibraryTime("fast", "FastBLAS 2.0", 1.0, (1.0, 1.0))
LIBRARIES = (FAST, LibraryTime("broken", "", failure="crashed"))


def parts_with_a_choice(*installed: str) -> Backends:
    """Returns backends of one target, whose baseline may be one of ``installed``."""

    target = fakes.changed(fakes.FAKE, baselines=Installed(installed))
    return fakes.changed(fakes.backends(), targets={"fake": target})


@final
class Installed(BaselineChoice):
    def __init__(self, installed: tuple[str, ...]) -> None:
        self._installed = installed

    def require(self, choice: str, problem: Problem) -> None:
        if choice not in self._installed:
            raise UsageError(f"baseline {choice}: not installed", f"pip install {choice}")

    def target(self, choice: str) -> Target:
        def chosen(problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
            found = fakes.baseline(problem, threads, seed, wait)
            return dataclasses.replace(found, name=f"{choice} of the user", libraries=LIBRARIES)

        return fakes.changed(fakes.FAKE, baseline=chosen, runner=fakes.runner_without_baseline)

    def recorded(self, name: str, problem: Problem) -> str:
        return ""


@pytest.mark.parametrize(
    ("choice", "expected"), [("mkl", ("mkl of the user", LIBRARIES)), ("", ("FakeBLAS 1.0", ()))]
)
def test_the_chosen_or_default_baseline_is_measured_and_kept(
    store: Store, choice: str, expected: Any
) -> None:
    parts = parts_with_a_choice("mkl")
    settings = run_settings(RunRequest(PROBLEM, trials=3, baseline=choice), parts)
    run = begin(settings, parts, store, Interruption()).run
    assert store.run(run.id).settings.baseline_library == choice
    again = resume(run.id, parts, store, Interruption(), retime=True).run
    for baseline in map(present, (store.run(run.id).baseline, again.baseline)):
        assert (baseline.name, baseline.libraries) == expected


def test_a_missing_library_is_refused_before_a_run_begins_and_is_resumed(store: Store) -> None:
    request = RunRequest(PROBLEM, trials=3, baseline="mkl")
    missing = r"^baseline mkl: not installed; pip install mkl$"
    with pytest.raises(UsageError, match=missing):
        run_settings(request, parts_with_a_choice())
    parts = parts_with_a_choice("mkl")
    run = begin(run_settings(request, parts), parts, store, Interruption()).run
    with pytest.raises(UsageError, match=missing):
        resume(run.id, parts_with_a_choice(), store, Interruption(), retime=True)


def with_baselines(kind: str) -> Backends:
    status = TargetStatus(kind if kind == "cpu" else "fake", True, "here")
    fake = fakes.changed(fakes.kind_of(status), baselines=TARGETS[kind].baselines)
    return fakes.changed(fakes.backends(), targets={fake.name: fake})


def test_targets_with_one_baseline_refuse_a_choice_and_the_cpu_an_unknown_one(tmp_path: Path) -> None:
    cuda, cpu, replay = with_baselines("cuda"), with_baselines("cpu"), f"replay:{write_recording(tmp_path)}"
    for backends, target, baseline, message in (
        (cuda, "auto", "best", "^--baseline best cannot be combined with this target: the base"),
        (cpu, "auto", "mlk", "^baseline: found 'mlk', allowed best, openblas, mkl.*did you mean mkl"),
        (fakes.backends(), replay, "mkl", "^baseline 'mkl' cannot be combined with replay:FILE"),
    ):
        with pytest.raises(UsageError, match=message):
            run_settings(RunRequest(PROBLEM, target, baseline=baseline), backends)
    allowed = RunRequest(PROBLEM, baseline="openblas")
    assert run_settings(allowed, with_baselines("cpu")).baseline_library == "openblas"
    with pytest.raises(UsageError, match=r"^--baseline best cannot be combined with this target"):
        TARGETS["simulator"].with_baseline("best")
    kind = FleetTarget(parts_with_a_choice("mkl").targets["fake"], FleetRequest("postgresql://nowhere"))
    with pytest.raises(UsageError, match=r"^--baseline mkl cannot be combined with --fleet: nodes compare"):
        kind.require_baseline("mkl", PROBLEM)
    kind.require_baseline("", PROBLEM)


# Which target a word means: its kind and chip, and what works on a machine.

NO_GPU = TargetStatus("cuda", False, "no driver")


def test_a_word_names_a_kind_and_its_chip() -> None:
    for text, chip, *named in (
        ("cpu", "", "cpu"),
        ("simulator", "", "simulator", "sm_90"),
        ("simulator", "sm_80", "simulator", "sm_80"),
        ("cuda:sm_90a", "", "cuda", "sm_90a"),
        ("cuda:sm_90a", "sm_90a", "cuda", "sm_90a"),
        ("replay:/data/a:b.t4.json", "", "replay", "/data/a:b.t4.json"),
    ):
        assert named_target(text, real_backends(), chip) == TargetName(*named)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("simulator", "sm_1"), "^chip: found 'sm_1', allowed sm_80, sm_86, "),
        (("simulator:",), "^chip: found '', allowed sm_80, "),
        (("cuda:sm_90", "sm_80"), "^chip 'sm_80' cannot be combined with target 'cuda:sm_90'; name "),
        (("cpu", "sm_80"), "^chip 'sm_80' cannot be combined with target cpu, only with cuda, simulator$"),
        (("cpu:avx2",), "^cpu: found 'avx2', allowed x86-64-v3, .*, apple-m1$"),
        (("replay", "sm_90"), "^chip 'sm_90' cannot be combined with target replay, only with cuda"),
        (("teapot",), "^target: found 'teapot', allowed auto, cpu, cuda, simulator, replay$"),
        (("gpu",), "^target: found 'gpu', allowed .*; did you mean cuda[?]$"),
        (("GPU:sm_80",), "; did you mean cuda:sm_80[?]$"),
        (("sm_90",), "; did you mean cuda:sm_90[?]$"),
        (("znver4",), "; did you mean cpu:znver4[?]$"),
        (("x86",), "; did you mean cpu[?]$"),
    ],
)
def test_a_word_that_is_wrong_is_named(options: tuple[str, ...], message: str) -> None:
    text, *chip = options
    with pytest.raises(UsageError, match=message):
        named_target(text, real_backends(), *chip)


CPU = TargetStatus("cpu", True, "here")
H200 = TargetStatus("cuda", True, "NVIDIA H200", chip="sm_90", chips=("sm_90", "sm_90a"))
A100 = TargetStatus("cuda", True, "an A100", chip="sm_80")
COMPILES = TargetStatus("cuda", False, "compiles only: no driver", can_compile=True, missing="no driver")
UNTIMED = TargetStatus("simulator", True, "no clock", is_timed=False)


def test_auto_is_the_best_target_that_works_and_the_default_chip_is_that_of_the_gpu_here() -> None:
    for statuses, text, chip, *named in (
        ((TargetStatus("gpu", False, "no driver"), CPU), "auto", "", "cpu"),
        ((UNTIMED, NO_GPU, CPU), "auto", "", "cpu"),  # never one without times
        ((CPU, H200), "auto", "", "cuda", "sm_90"),
        ((CPU, H200), "cuda", "", "cuda", "sm_90"),
        ((CPU, H200), "cpu", "", "cpu"),
        ((CPU, H200), "cuda", "sm_90a", "cuda", "sm_90a"),
        ((A100,), "cuda", "", "cuda", "sm_80"),
        ((replace(COMPILES, is_timed=False),), "cuda", "sm_80", "cuda", "sm_80"),
    ):
        assert resolve_target(text, fakes.backends(statuses), chip) == TargetName(*named)


NOTHING_WORKS = (TargetStatus("gpu", False, "no driver"), TargetStatus("cpu", False, "no AVX2"))
OTHER_CHIP = "^target cuda:sm_80: the GPU here is sm_90; --target cuda:sm_90, or simulator:sm_80$"


@pytest.mark.parametrize(
    ("statuses", "options", "message"),
    [
        ((UNTIMED, NO_GPU, CPU), ("auto", "sm_80"), "target cpu, only with simulator, cuda"),
        ((UNTIMED,), ("auto",), "found none that works here: simulator: no clock"),
        (NOTHING_WORKS, ("auto",), "found none that works here: gpu: no driver; cpu: no AVX2"),
        (NOTHING_WORKS, ("cpu",), "target cpu: not available here: no AVX2"),
        (NOTHING_WORKS, ("tpu",), "target: found 'tpu', allowed auto, gpu, cpu"),
        ((H200,), ("cuda:sm_1",), "chip: found 'sm_1', allowed sm_80, "),
        *(
            ((H200, UNTIMED), of, OTHER_CHIP)
            for of in (("cuda:sm_80",), ("cuda", "sm_80"), ("auto", "sm_80"))
        ),
    ],
)
def test_what_works_nowhere_is_refused_with_every_reason(statuses: Any, options: Any, message: str) -> None:
    text, *chip = options
    with pytest.raises(UsageError, match=message):
        resolve_target(text, fakes.backends(statuses), *chip)


def test_a_run_is_refused_where_candidates_only_compile() -> None:
    line = (
        r"^target cuda:sm_80: nothing runs here: no driver; to verify without a GPU, and carry the result "
        r"to one by tuner bundle export: tuner tune matmul 8x8x8 --target simulator:sm_80$"
    )
    with pytest.raises(UsageError, match=line):
        require_runs_here(
            TargetName("cuda", "sm_80"), fakes.backends((COMPILES, UNTIMED)), "tuner tune matmul 8x8x8"
        )
    require_runs_here(TargetName("cuda", "sm_80"), fakes.backends((A100,)), "tuner tune matmul 8x8x8")
