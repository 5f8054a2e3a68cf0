"""Twenty processors: what one has tuned, another runs, or refuses in one line; nothing ends by a signal.

No machine code is made and nothing runs, since this machine is none of them: compiled is to LLVM dialect, and
a kernel that needs an instruction set is the fastest.
"""

import dataclasses
import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import pytest

from tests.cli.conftest import Tuner
from tests.runtime.cpu.faked_machines import FAKED, FakedMachine, fake
from tests.tuning import fakes
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core import interfaces
from tuner.core.errors import UsageError
from tuner.core.interfaces import Artifact, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.processors import instruction_sets_of, missing_on
from tuner.core.records import Measurement, Verdict
from tuner.core.roofline import Roofline
from tuner.db.store import Store
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.results.best_trials import best_here
from tuner.results.regression.gate import GateStatus, check_entry, recorded_entry
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.workers.runner import RunnerOrder, TrialRunner
from tuner.space.scripts.header import ScriptProvenance, read_provenance
from tuner.targets.backends import Backends
from tuner.targets.cpu import evaluator
from tuner.targets.cpu.callables import CpuCallable
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.loaded_kernel import LoadedKernel
from tuner.targets.cpu.target import Cpu, host_machine
from tuner.targets.target import RunnerSettings

pytestmark = pytest.mark.mlir


SHAPE = "20x36x24"
DTYPES = ("bf16", "i8")
VECTORS = tuple(each for each in FAKED if "fma" in each.flags)  # the others have no AVX2
NAMES = [f"{each.processor} {number}" for number, each in enumerate(FAKED)]


@final
class CachingCompiler(interfaces.AbstractCompiler):
    def compile(self, problem: Problem, script: Script) -> Artifact:
        return compiled(problem, script)


@functools.cache
def compiled(problem: Problem, script: Script) -> Artifact:
    return CpuCompiler().compile(problem, script)


class KeptText:
    """Stands in place of machine code: what was to be compiled."""

    def __init__(self, llvm_text: str, entries: tuple[str, ...]) -> None:
        self.text = llvm_text
        self.addresses = dict.fromkeys(entries, 0)


@final
class UnrunEvaluator(interfaces.AbstractEvaluator):
    """Loads as the real evaluator does; runs nothing: a kernel that needs an instruction set is faster."""

    def load(self, problem: Problem, artifact: Artifact) -> LoadedKernel:
        return CpuEvaluator(1).load(problem, artifact)

    def verify(self, problem: Problem, *_: Any, **__: Any) -> Verdict:
        return Verdict(0.1, problem.rows)

    def measure(self, problem: Problem, loaded: object, *_: Any, **__: Any) -> Measurement:
        assert isinstance(loaded, LoadedKernel)
        assert isinstance(loaded.code, KeptText)
        time_s = 1e-3 if instructions_needed(loaded.code.text) else 2e-3
        return Measurement((time_s,) * 5, 1, time_s, (time_s, time_s))

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], *_: Any, **__: Any
    ) -> tuple[Measurement, ...]:
        return tuple(self.measure(problem, each) for each in loaded)


def runner(order: RunnerOrder, how: RunnerSettings) -> interfaces.AbstractRunner:
    return TrialRunner.local(order, CachingCompiler(), UnrunEvaluator(), how.seed)


def backends() -> Backends:
    kind = fakes.changed(
        Cpu(),
        runner=runner,
        baseline=fakes.no_baseline,
        roofline=lambda _problem, _threads, _wait: Roofline(1e12, 1e11),
        times_processors=False,
    )
    return fakes.changed(fakes.backends(), targets={"cpu": kind}, machine=host_machine)


@dataclasses.dataclass(frozen=True)
class Faked:
    tuner: Tuner
    become: Callable[[FakedMachine], None]
    folder: Path

    def tune(self, dtype: str, *options: str) -> None:
        self.tuner.done(*self.words(dtype), *options)

    def words(self, dtype: str) -> tuple[str, ...]:
        space = ("--space", str(self.folder / "space.yaml"), "--sampler", "exhaustive")
        return ("tune", "matmul", SHAPE, "--dtype", dtype, "--target", "cpu", *space)

    def tried(self, run: int) -> dict[str, str]:
        trials = self.tuner("history --run", str(run), "--json").json
        return {each["strategy"]: each["status"] for each in trials}

    def exported(self, dtype: str) -> tuple[Path, ScriptProvenance]:
        """Exports the best script of the machine of the moment; returns its file, and its provenance."""
        file = self.folder / f"best_{dtype}.mlir"
        self.tuner.done("export matmul", SHAPE, "--dtype", dtype, "--target", "cpu", "-o", str(file))
        return file, read_provenance(file, file.read_text())


@pytest.fixture
def faked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faked:
    shutil.copy(Path(__file__).with_suffix(".yaml"), tmp_path / "space.yaml")
    monkeypatch.setattr(evaluator, "JittedModule", KeptText)
    tuner = Tuner(tmp_path / "results.db", backends())
    return Faked(tuner, lambda machine: fake(machine, tmp_path, monkeypatch), tmp_path)


def offered(machine: FakedMachine, dtype: str) -> dict[str, str]:
    flags = set(machine.flags.split())
    is_avx512 = flags >= {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
    tiles = {"bf16": {"amx_tile", "amx_bf16"}, "i8": {"amx_tile", "amx_int8"}}[dtype]
    has = {
        "matmul_cpu_direct": True,
        "matmul_cpu_pairs": dtype == "bf16" and is_avx512 and "avx512_bf16" in flags,
        "matmul_cpu_vnni": dtype == "i8",
        "matmul_cpu_amx": is_avx512 and flags >= tiles and machine.grants_tiles,
    }
    return {name: "measured" for name, is_there in has.items() if is_there}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("machine", FAKED, ids=NAMES)
def test_a_machine_tunes_what_it_has_and_takes_its_results_back(faked: Faked, machine: FakedMachine) -> None:
    faked.become(machine)
    if machine not in VECTORS:
        assert "has neither AVX-512 nor AVX2 with FMA" in faked.tuner.refused(*faked.words("i8"))
        return
    for run, dtype in enumerate(DTYPES, start=1):
        faked.tune(dtype)
        assert faked.tried(run) == offered(machine, dtype)
    run = FAKED.index(machine) % 2 + 1  # every other machine's
    dtype = DTYPES[run - 1]
    file, provenance = faked.exported(dtype)
    assert provenance.machine == describe_machine().name
    assert missing_on(describe_machine(), provenance.needs) == ()
    assert bool(provenance.needs) == (len(offered(machine, dtype)) > 1)
    assert faked.tuner("check", str(file)).code in (0, 3)
    assert faked.tuner("tune --resume", str(run), "--retime").code == 0
    with Store.open(str(faked.tuner.database)) as store:
        trial = best_here(store, faked.tuner.backends, Matmul(20, 36, 24, dtype), "cpu").best
        assert isinstance(Cpu().load(trial.record.problem, trial, None), CpuCallable)


def is_refused(words: tuple[str, ...], tuner: Tuner, needs: tuple[str, ...]) -> bool:
    """Returns whether a command is refused because ``needs`` is missing, in one line and a hint."""
    if not needs:
        return False
    return f"needs {' and '.join(needs)}, which " in tuner.refused(*words)


# Each type where the next machine lacks what it needs; of other machines one type.
OF_NEXT = {4: ("i8",), 8: ("bf16",), 12: DTYPES, 15: ("bf16",), 16: ("i8",), 0: DTYPES}


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("number", "dtype"),
    [(n, dtype) for n in range(len(VECTORS)) for dtype in OF_NEXT.get(n, (DTYPES[n % 2],))],
)
def test_what_one_machine_found_is_used_where_it_can_run(faked: Faked, number: int, dtype: str) -> None:
    """The next machine has more, less or the same; the first comes after the last."""
    before, after = VECTORS[number - 1], VECTORS[number]
    faked.become(before)
    faked.tune(dtype)
    file, provenance = faked.exported(dtype)
    tuner, problem = faked.tuner, Matmul(20, 36, 24, dtype)
    with Store.open(str(tuner.database)) as store:
        entry = recorded_entry(tuner.backends, store, best_here(store, tuner.backends, problem, "cpu").best)
    there = describe_machine()
    faked.become(after)
    here = describe_machine()
    missing = missing_on(here, provenance.needs)

    assert is_refused(("check", str(file)), tuner, missing) or tuner("check", str(file)).code in (0, 3)
    apply = ("apply", str(file), str(file.with_name(f"best_{dtype}.source.mlir")))
    assert is_refused(apply, tuner, missing) or tuner(*apply).code == 0
    result = check_entry(tuner.backends, entry, SlowdownLimits.up_to())
    if missing:
        assert result.status is GateStatus.FAILED
    elif dtype == "i8" and (there.isa, there.has_vnni) != (here.isa, here.has_vnni):  # other products
        assert result.status is GateStatus.NOT_SLOWER
    else:
        assert result.status is GateStatus.SAME_CODE
    assert not missing or result.reason.startswith(f"its recorded code: needs {missing[0]}")

    retime = ("tune", "--resume", "1", "--retime")
    if here.name == provenance.machine:
        assert tuner(*retime).code == 0
    else:
        assert "this machine is" in tuner.refused(*retime)
        with Store.open(str(tuner.database)) as store, pytest.raises(UsageError, match="nothing measured on"):
            best_here(store, tuner.backends, problem, "cpu")
    strategy = ("tune", "matmul", SHAPE, "--dtype", dtype, "--target", "cpu", "--strategy", str(file))
    assert is_refused(strategy, tuner, missing) or tuner(*strategy, "--fresh").code == 0

    faked.tune(dtype)  # begins with what was best on the other machine
    last = max(each["run"] for each in tuner("history", "--json").json)
    assert faked.tried(last) == offered(after, dtype)


def test_two_machines_share_results_only_under_one_name(faked: Faked) -> None:
    """Where the operating system refuses tiles, a machine is like one without."""
    names: dict[str, set[Any]] = {}
    for machine in FAKED:
        faked.become(machine)
        here = describe_machine()
        names.setdefault(here.name, set()).add(instruction_sets_of(here))
    assert len(names) == len(FAKED) - 1
    assert {len(offers) for offers in names.values()} == {1}
