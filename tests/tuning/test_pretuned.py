"""Shipped results: their files, which one serves a processor, and what they choose."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.program_matmuls import program_text
from tests.fusion_problems import fusion_problems
from tests.models.library.dispatch.rules import machine, rule_of, ship
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.processors import processor_of
from tuner.core.requests import RunRequest
from tuner.core.roofline import Roofline
from tuner.core.runs import SHIPPED, InitialConfiguration
from tuner.db.store import Store
from tuner.results.output.formatting import initial_configurations_text
from tuner.space.scripts.choice import first_configuration
from tuner.targets.registry import real_backends
from tuner.tuning import pretuned
from tuner.tuning.earlier_results import planned
from tuner.tuning.pretuned import (
    FOLDER,
    SUFFIX,
    THREADS,
    class_of,
    held_out_speeds,
    initial_configuration,
    shipped_picks,
    shipped_roofline,
    shipped_rule,
    shipped_text,
)
from tuner.tuning.request import run_settings
from tuner.tuning.rule import ProblemSpaces, parse_rule

FILES = sorted(FOLDER.glob(f"*{SUFFIX}"))
BYTES_LIMIT = 400_000  # some 25 kB each, a fifth of that in the wheel
ZEN5 = processor_of("znver5").machine
UNKNOWN = replace(ZEN5, name="Frobnicator (family 99 model 1, avx512 bf16 vnni, caches 48K/1M/32M)")


def rule_of_file(name: str) -> tuple[str, str, int]:
    processors, dtype, threads = name.removesuffix(SUFFIX).rsplit("_", 2)
    return processors, dtype, int(threads)


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_file_is_of_the_class_that_its_name_says_and_its_configurations_exist(file: Path) -> None:
    rule = parse_rule(file.read_text(), file.name)
    processors, dtype, threads = rule_of_file(file.name)
    assert (rule.threads, threads in THREADS) == (threads, True)
    assert {each.problem.dtype for each in rule.problems} == {dtype}
    machine = replace(ZEN5, name=rule.machine, has_amx_bf16="amx_bf16" in rule.machine)
    assert class_of(replace(machine, isa="avx512" if "avx512" in rule.machine else "avx2")) == processors
    speeds = held_out_speeds(rule)
    assert len(speeds) > len(rule.problems) // 2
    assert 0.3 < speeds[0] <= speeds[-1] <= 1
    # knobs may have been added since; those that a configuration has must exist
    known = {
        entry.name: {knob.name for knob in entry.knobs}
        for entry in ProblemSpaces.shipped(ZEN5, 1).space_file.strategies
    }
    for each in rule.configurations:
        assert {name for name, _ in each.knobs} <= known[each.strategy]


def test_all_files_together_are_small() -> None:
    assert sum(file.stat().st_size for file in FILES) <= BYTES_LIMIT


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("znver3", "zen3"),
        ("znver4", "zen4"),
        ("znver5", "zen5"),
        ("sapphirerapids", "xeon_amx"),
        ("graniterapids", "xeon_amx"),
        ("icelake-server", "avx512"),
        ("haswell", "avx2"),
        ("alderlake", "avx2"),
    ],
)
def test_a_processor_has_a_class_by_its_microarchitecture(name: str, found: str) -> None:
    assert class_of(processor_of(name).machine) == found


def machine_named(name: str, *, amx: bool = False, isa: str = "avx512") -> Machine:
    return replace(ZEN5, name=name, has_amx_bf16=amx, isa=isa)


def test_real_names_of_machines_have_the_class_of_their_family() -> None:
    epyc = "AMD EPYC (family {} model 17, avx512 bf16 vnni, caches 32K/1M/32M)"
    assert class_of(machine_named(epyc.format(25))) == "zen4"
    assert class_of(machine_named(epyc.format(26))) == "zen5"
    assert (
        class_of(machine_named("AMD EPYC (family 25 model 1, avx2, caches 32K/512K/32M)", isa="avx2"))
        == "zen3"
    )
    limited = "AMD EPYC as znver3 (family 25 model 17, avx2, caches 32K/512K/32M)"
    assert class_of(machine_named(limited, isa="avx2")) == "avx2"
    xeon = "Intel(R) Xeon(R) Processor (family 6 model 167, avx512 bf16 vnni amx_bf16, caches 48K/2M/105M)"
    assert class_of(machine_named(xeon, amx=True)) == "xeon_amx"
    assert class_of(machine_named(xeon)) == "xeon"  # the operating system refuses AMX


def test_an_unknown_processor_is_served_by_the_nearest_class_and_says_so() -> None:
    shipped = shipped_rule(UNKNOWN, "f32", 1)
    assert shipped is not None
    assert not shipped.is_own
    assert "amx" not in shipped.processors
    text = shipped_text(UNKNOWN)
    assert text.startswith(
        f"no shipped results for this processor (avx512): the nearest class is {shipped.processors},"
    )
    assert text.endswith("unknown here; used only after a comparison with the baseline")
    assert shipped_rule(replace(UNKNOWN, isa="none"), "f32", 1) is None
    assert shipped_text(replace(UNKNOWN, isa="none")).startswith("no shipped results for none: a cost model")
    more = shipped_rule(ZEN5, "f32", 8)
    assert more is None or not more.is_own  # measured with fewer threads


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
def test_a_processor_with_amx_takes_no_file_of_processors_without(
    dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copy(FOLDER / f"zen5_{dtype}_1.yaml", tmp_path)
    monkeypatch.setattr(pretuned, "FOLDER", tmp_path)
    xeon = replace(processor_of("sapphirerapids").machine, has_amx_bf16=False, has_amx_int8=False)
    without = shipped_rule(xeon, dtype, 1)
    assert without is not None
    assert without.processors == "zen5"
    assert shipped_rule(processor_of("sapphirerapids").machine, dtype, 1) is None


@pytest.mark.parametrize(
    "problem", [Matmul(100, 200, 300), Matmul(64, 4096, 512, layout="nt", epilogue="bias_relu")]
)
def test_what_is_chosen_is_allowed_for_the_problem(problem: Problem) -> None:
    space = ProblemSpaces.shipped(ZEN5, 1)
    picks = shipped_picks(space, problem)
    assert picks is not None
    assert len(set(picks.candidates)) == len(picks.candidates) > 2
    assert "shipped results of " in picks.origin
    for candidate in picks.candidates:
        assert any(each.contains(candidate) for each in space.spaces(problem))
    assert shipped_picks(space, replace(problem, dtype="f64")) is None


def test_what_breaks_a_preference_is_chosen_in_the_measured_layout_alone() -> None:
    space = ProblemSpaces.shipped(ZEN5, 1)
    for sizes in ((512, 512, 512), (16, 512, 512)):
        picks = shipped_picks(space, Matmul(*sizes, layout="nt"))
        assert picks is not None
        assert picks.candidates[0].strategy == "matmul_cpu_packed"
    assert shipped_picks(space, Matmul(1, 4096, 512, layout="nt")) is None  # dot products, which no rule has


def test_a_fusion_that_is_a_matmul_has_what_is_chosen_for_the_matmul() -> None:
    matmul = Matmul(64, 256, 48, epilogue="residual")
    (fusion,) = fusion_problems(program_text(matmul))
    picks = shipped_picks(ProblemSpaces.shipped(ZEN5, 1), matmul)
    assert picks is not None
    initial = initial_configuration(fusion, ZEN5)
    assert initial is not None
    assert initial[0] == picks.candidates[0]
    following = initial_configuration(fusion, ZEN5, skipped=1)
    assert following == first_configuration(fusion, ZEN5)


def first_of(store: Store, problem: Problem, **changes: object) -> tuple[InitialConfiguration, ...]:
    backends = real_backends()
    settings = run_settings(RunRequest(problem, target="cpu", trials=9, **changes), backends)  # type: ignore[arg-type]
    source = backends.target_of_run(settings)
    return planned(settings, source.machine(settings.target), source, store)[0].first or ()


def test_a_search_begins_with_what_is_shipped_unless_it_begins_with_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Matmul(64, 48, 33)
    ship(tmp_path, monkeypatch, rule_of({Matmul(64, 48, 32): (1e-3, 2e-3)}))
    with Store.open(str(tmp_path / "results.db")) as store:
        first = first_of(store, problem)
        origins = [each.origin for each in first]
        assert origins[:2] == [SHIPPED, SHIPPED]
        assert SHIPPED not in origins[2:]
        assert "2 of shipped results, then " in initial_configurations_text(first)
        for changes in ({"warm_start": False}, {"fresh": True}):
            assert SHIPPED not in [each.origin for each in first_of(store, problem, **changes)]
        assert SHIPPED not in [each.origin for each in first_of(store, Matmul(64, 48, 33, dtype="f64"))]


def test_a_roofline_is_shipped_for_machines_of_that_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roofline, here = Roofline(1e12, 4e10, "measured by FMA"), machine()
    rule = replace(rule_of({Matmul(64, 48, 32): (1e-3, 2e-3)}), roofline=roofline)
    ship(tmp_path, monkeypatch, rule)
    found = shipped_roofline(here, "f32", 1)
    assert found == replace(roofline, flop_source="measured on a machine of this name")
    assert shipped_roofline(replace(here, name="another"), "f32", 1) is None
    assert shipped_roofline(here, "f32", 2) is None
    assert "roofline there, f32 x1: 1000 GFLOP/s, 40.0 GB/s" in shipped_text(here)
