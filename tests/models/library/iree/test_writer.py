"""Tuning specs of IREE: loaded by its compiler, run by its runtime, chosen by times that a test gives."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tuner.analysis.ratios import Comparable
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import Effort
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.core.processors import PROCESSORS
from tuner.core.records import Measurement
from tuner.models.library.entries import LibraryEntry
from tuner.models.library.iree import writer
from tuner.models.library.iree.writer import IreeConfiguration, configurations_for, program_of, spec_text
from tuner.runtime.timing import summarize

INSTALL = "pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0"
SMALL = Matmul(64, 96, 48)
TILES = IreeConfiguration((64, 64), (8, 32), 1)
FASTER = Comparable(1 / 1.5, (1 / 1.6, 1 / 1.4), 0.01)
NOTE = "1.50 times as fast (95 % interval 1.40 .. 1.60), reliable; IREE's default takes 2 ms; tuner's trial 5"
OTHERS = (IreeConfiguration((32, 96), (8, 32), 4), IreeConfiguration((64, 96), (4, 32), 1))


@pytest.fixture(scope="module")
def iree() -> writer.IreeCompiler:
    for package in ("iree.compiler", "iree.runtime"):
        pytest.importorskip(package, reason=f"needs IREE: {INSTALL}")
    return writer.find_compiler()


def entry(problem: Problem, threads: int = 1) -> LibraryEntry:
    machine = PROCESSORS["haswell"].machine
    candidate = Candidate.of("matmul_cpu_packed", {"tile_m": 8, "tile_n": 32})
    return LibraryEntry(problem, candidate, "", machine, threads, 1e-3, "", None, 5)


class Times:
    """A timer that gives prepared seconds per call, within 0.1 %: for the sieve, then the final timing."""

    def __init__(self, *rounds: Sequence[float]) -> None:
        self._rounds = [*rounds]

    def __call__(self, products: tuple[writer.IreeProduct, ...], effort: Effort) -> tuple[Measurement, ...]:
        seconds = self._rounds.pop(0)
        assert len(seconds) == len(products)
        rng, spread = np.random.default_rng(0), np.linspace(0.999, 1.001, 15)
        return tuple(summarize([float(each * part) for part in spread], 1, rng) for each in seconds)


def test_a_spec_is_used_for_its_problem_and_right(iree: writer.IreeCompiler) -> None:
    for problem in (
        *(replace(SMALL, layout=layout) for layout in ("nn", "nt", "tn")),
        *(Matmul(64, 96, 48, "bf16"), Matmul(64, 96, 48, "i8"), BatchMatmul(2, 64, 96, 48, layout="nt")),
    ):
        spec, program = spec_text((writer.SpecEntry(problem, TILES, "a test"),)), program_of(problem)
        assert iree.applied(program, spec) == 1, problem.key
        verdict, worst = writer.IreeProduct(iree.compile(program, spec), problem).verify()
        assert verdict.max_error <= 1.0, worst


def test_a_spec_is_not_used_for_another_layout_size_type_or_operation(iree: writer.IreeCompiler) -> None:
    spec = spec_text((writer.SpecEntry(SMALL, TILES, "a test"),))
    others = replace(SMALL, layout="nt"), Matmul(64, 96, 32), Matmul(64, 96, 48, "bf16")
    for other in (*others, BatchMatmul(2, 64, 96, 48)):
        assert iree.applied(program_of(other), spec) == 0, other


def test_a_spec_of_several_problems_is_used_for_each(iree: writer.IreeCompiler) -> None:
    problems = (SMALL, replace(SMALL, layout="nt"))
    chosen = tuple((writer.Selection(each, TILES, 2e-3, FASTER, ""), entry(each)) for each in problems)
    left = writer.Selection(Matmul(8, 8, 8), None, None, None, "a reason")
    text = writer.tuning_spec(iree, (*chosen, (left, entry(left.problem))))
    assert [iree.applied(program_of(each), text) for each in problems] == [1, 1]
    assert f"IREE's compiler {iree.version} and no other version" in text
    assert "// left to IREE: matmul 8x8x8 f32 nn none: a reason\n" in text
    assert f"64x96x48 f32 nt none: {NOTE}" in text


def test_the_note_of_a_spec_has_its_interval_and_its_reliability() -> None:
    compiler = cast(writer.IreeCompiler, SimpleNamespace(version="3.0", applied=lambda _program, _spec: 1))
    text = writer.tuning_spec(compiler, ((writer.Selection(SMALL, TILES, 2e-3, FASTER, ""), entry(SMALL)),))
    assert NOTE in text


def test_the_fastest_configuration_that_is_clearly_faster_is_kept(iree: writer.IreeCompiler) -> None:
    found = writer.select(iree, SMALL, OTHERS, Times((2.0, 1.5, 1.2), (2.0, 1.2, 2.001)))
    assert (found.configuration, found.default_s, found.reason) == (OTHERS[1], 2.0, "")
    assert found.compared is not None
    assert found.compared.speed == pytest.approx(2 / 1.2, rel=0.01)


def test_the_default_stays_where_nothing_is_clearly_faster(iree: writer.IreeCompiler) -> None:
    for final, reason in (
        ((2.0, 2.2, 2.0), "the fastest of 2 takes +10.0% time (95 % interval"),
        ((2.0, 1.99, 1.97), "not distinguishable, "),
        ((2.0, 1.2, 2.4), "two timings of the same code differ by 20%"),
    ):
        found = writer.select(iree, SMALL, OTHERS, Times((2.0, 1.5, 1.6), *[final] * writer.ATTEMPTS))
        assert found.configuration is None
        assert found.reason.startswith(reason)


def test_a_disturbed_timing_is_repeated_and_what_iree_refuses_left_out(iree: writer.IreeCompiler) -> None:
    timer = Times((2.0, 1.0), (2.0, 1.0, 2.5), (2.0, 1.0, 2.0))
    assert writer.select(iree, SMALL, (TILES,), timer).configuration == TILES
    refused = IreeConfiguration((64, 64), (-1, 32), 1)
    assert writer.select(iree, SMALL, (refused,)).reason == "no configuration is used by IREE and right"
    found = writer.select(iree, SMALL, (refused, TILES), Times((2.0, 1.0), (2.0, 1.0, 2.0)))
    assert found.configuration == TILES


def test_real_times_are_taken_and_types_that_iree_lacks_are_left_to_it(iree: writer.IreeCompiler) -> None:
    found = writer.select(iree, SMALL, (TILES,))  # which is faster is not asked
    assert found.default_s is not None
    assert found.default_s > 0
    assert (found.configuration is None) == bool(found.reason)
    found = writer.select(iree, Matmul(8, 8, 8, "f64"), (TILES,))
    assert found.reason == "IREE does not compute f64 as such by default"


def test_no_winner_no_program_and_several_threads_are_refused(iree: writer.IreeCompiler) -> None:
    left = writer.Selection(SMALL, None, 1e-3, None, "why")
    message = r"nothing is faster than IREE's default: matmul 64x96x48 .* none: why"
    with pytest.raises(TunerError, match=message):
        writer.tuning_spec(iree, ((left, entry(SMALL)),))
    with pytest.raises(writer.IreeCompileError, match=r"^iree-compile: .*expected[^\n]*$"):
        iree.compile("func.func @")
    with pytest.raises(UsageError, match="trial 5 is of 2 threads, IREE is timed on one"):
        writer.iree_files((entry(SMALL, threads=2),))


def test_without_iree_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="IREE's compiler and runtime is not installed") as raised:
        writer.iree_files((entry(SMALL),))
    assert raised.value.hint == INSTALL


def test_what_iree_cannot_tell_apart_is_one_contraction() -> None:
    assert writer.contraction_of(replace(SMALL, epilogue="bias_relu", align="64", cache="cold")) == SMALL
    assert writer.contraction_of(Matmul(64, 96, 48, "bf16", output="bf16")) == Matmul(64, 96, 48, "bf16")


# Which configurations are proposed to IREE for an entry; nothing is compiled.

LARGE = Matmul(128, 2304, 768)
KNOBS: dict[str, Value] = {"block_m": 64, "block_n": 0, "tile_m": 12, "tile_n": 48, "unroll_k": 2}
PIPELINE = "pipeline = #iree_cpu.pipeline<DoubleTilingExpert>"


def entry_with(problem: Problem, **knobs: Value) -> LibraryEntry:
    return replace(entry(problem), candidate=Candidate.of("matmul_cpu_packed", knobs))


def test_the_tiles_of_the_knobs_come_first_and_none_is_too_large_or_proposed_twice() -> None:
    first, second, *others = configurations_for(entry_with(LARGE, **KNOBS))
    assert first == IreeConfiguration((64, 2304), (12, 48), 2)
    assert second == IreeConfiguration((64, 2304), (8, 32), 2)
    assert len(others) == writer.MOST - 2
    assert {each.tile for each in others} == {(8, 32)}
    found = configurations_for(entry_with(Matmul(4, 24, 2), **KNOBS))
    assert found == tuple(dict.fromkeys(found))
    assert {each.distribution for each in found} == {(4, 24)}
    assert {each.tile for each in found} == {(4, 24)}
    assert {each.step for each in found} == {1, 2}


def test_a_strategy_without_such_knobs_has_the_known_configurations_and_alignment_changes_nothing() -> None:
    known = IreeConfiguration((128, 2304), (8, 32), 1)
    assert configurations_for(entry_with(LARGE, tiles_m=2, tiles_n=2))[0] == known
    aligned = entry_with(replace(LARGE, align="64"), **KNOBS)
    assert configurations_for(aligned) == configurations_for(entry_with(LARGE, **KNOBS))


def test_the_attribute_lists_the_sizes_by_dimension() -> None:
    levels = ("distribution", "vector_common_parallel", "vector_reduction")
    for problem, sizes in (
        (LARGE, ("[64, 256, 0]", "[8, 32, 0]", "[0, 0, 4]")),
        (BatchMatmul(3, 128, 2304, 768), ("[1, 64, 256, 0]", "[1, 8, 32, 0]", "[0, 0, 0, 4]")),
    ):
        listed = ", ".join(f"{level} = {each}" for level, each in zip(levels, sizes, strict=True))
        text = IreeConfiguration((64, 256), (8, 32), 4).attribute(problem)
        lowering = f"lowering_config = #iree_cpu.lowering_config<{listed}>"
        translation = f"translation_info = #iree_codegen.translation_info<{PIPELINE}>"
        assert text == f"#iree_codegen.compilation_info<{lowering}, {translation}>"
