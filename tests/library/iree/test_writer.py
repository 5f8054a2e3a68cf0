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
from tuner.core.problem import BatchMatmul, Matmul, Problem
from tuner.core.processors import PROCESSORS
from tuner.core.records import Measurement
from tuner.library.entries import LibraryEntry
from tuner.library.iree import writer
from tuner.library.iree.tuning_spec import (
    MOST,
    IreeConfiguration,
    SpecEntry,
    configurations_for,
    contraction_of,
    program_of,
    spec_text,
)
from tuner.library.iree.writer import (
    ATTEMPTS,
    IreeCompileError,
    IreeCompiler,
    IreeProduct,
    Selection,
    find_compiler,
    iree_files,
    select,
    tuning_spec,
)
from tuner.runtime.timing import summarize

SMALL = Matmul(64, 96, 48)
TILES = IreeConfiguration((64, 64), (8, 32), 1)
FASTER = Comparable(1 / 1.5, (1 / 1.6, 1 / 1.4), 0.01)
NOTE = "1.50 times as fast (95 % interval 1.40 .. 1.60), reliable; IREE's default takes 2 ms; tuner's trial 5"
OTHERS = (IreeConfiguration((32, 96), (8, 32), 4), IreeConfiguration((64, 96), (4, 32), 1))


@pytest.fixture(scope="module")
def iree() -> IreeCompiler:
    pytest.importorskip(
        "iree.compiler", reason="needs IREE: pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0"
    )
    pytest.importorskip(
        "iree.runtime", reason="needs IREE: pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0"
    )
    return find_compiler()


def entry(problem: Problem, threads: int = 1) -> LibraryEntry:
    machine = PROCESSORS["haswell"].machine
    candidate = Candidate.of("matmul_cpu_packed", {"tile_m": 8, "tile_n": 32})
    return LibraryEntry(problem, candidate, "", machine, threads, 1e-3, "", None, 5)


def times_of(seconds: Sequence[float], spread: float = 0.001) -> tuple[Measurement, ...]:
    """Returns measurements around given medians, with a relative spread."""
    rng = np.random.default_rng(0)
    return tuple(
        summarize([float(each * (1 + spread * part)) for part in np.linspace(-1, 1, 15)], 1, rng)
        for each in seconds
    )


class Times:
    """A timer that gives prepared seconds per call: for the sieve, then for the final timing."""

    def __init__(self, *rounds: Sequence[float], spread: float = 0.001) -> None:
        self._rounds = [*rounds]
        self._spread = spread

    def __call__(self, products: tuple[IreeProduct, ...], effort: Effort) -> tuple[Measurement, ...]:
        seconds = self._rounds.pop(0)
        assert len(seconds) == len(products)
        return times_of(seconds, self._spread)


@pytest.mark.parametrize(
    "problem",
    [
        SMALL,
        replace(SMALL, layout="nt"),
        replace(SMALL, layout="tn"),
        Matmul(64, 96, 48, "bf16"),
        Matmul(64, 96, 48, "i8"),
        BatchMatmul(2, 64, 96, 48, layout="nt"),
    ],
    ids=lambda problem: problem.key,
)
def test_a_spec_is_used_for_its_sizes_layout_and_type_and_the_result_is_right(
    problem: Problem, iree: IreeCompiler
) -> None:
    spec = spec_text((SpecEntry(problem, TILES, "a test"),))
    assert iree.applied(program_of(problem), spec) == 1
    verdict, worst = IreeProduct(iree.compile(program_of(problem), spec), problem).verify()
    assert verdict.max_error <= 1.0, worst


@pytest.mark.parametrize(
    "other",
    [replace(SMALL, layout="nt"), Matmul(64, 96, 32), Matmul(64, 96, 48, "bf16"), BatchMatmul(2, 64, 96, 48)],
)
def test_a_spec_is_not_used_for_another_layout_size_type_or_operation(
    other: Problem, iree: IreeCompiler
) -> None:
    square = spec_text((SpecEntry(SMALL, TILES, "a test"),))
    assert iree.applied(program_of(other), square) == 0


def test_a_spec_of_several_problems_is_used_for_each(iree: IreeCompiler) -> None:
    problems = (SMALL, replace(SMALL, layout="nt"))
    chosen = tuple((Selection(each, TILES, 2e-3, FASTER, ""), entry(each)) for each in problems)
    left = Selection(Matmul(8, 8, 8), None, None, None, "a reason")
    text = tuning_spec(iree, (*chosen, (left, entry(left.problem))))
    assert [iree.applied(program_of(each), text) for each in problems] == [1, 1]
    assert f"IREE's compiler {iree.version} and no other version" in text
    assert "// left to IREE: matmul 8x8x8 f32 nn none: a reason\n" in text
    assert f"64x96x48 f32 nt none: {NOTE}" in text


def test_the_note_of_a_spec_has_its_interval_and_its_reliability() -> None:
    compiler = cast(IreeCompiler, SimpleNamespace(version="3.0", applied=lambda _program, _spec: 1))
    text = tuning_spec(compiler, ((Selection(SMALL, TILES, 2e-3, FASTER, ""), entry(SMALL)),))
    assert NOTE in text


def test_the_fastest_configuration_that_is_clearly_faster_is_kept(iree: IreeCompiler) -> None:
    timer = Times((2.0, 1.5, 1.2), (2.0, 1.2, 2.001))
    found = select(iree, SMALL, OTHERS, timer)
    assert (found.configuration, found.default_s, found.reason) == (OTHERS[1], 2.0, "")
    assert found.compared is not None
    assert found.compared.speed == pytest.approx(2 / 1.2, rel=0.01)


@pytest.mark.parametrize(
    ("final", "spread", "reason"),
    [
        ((2.0, 2.2, 2.0), 0.001, "the fastest of 2 takes +10.0% time (95 % interval"),
        ((2.0, 1.99, 1.97), 0.001, "not distinguishable, "),
        ((2.0, 1.2, 2.4), 0.001, "two timings of the same code differ by 20%"),
    ],
)
def test_the_default_stays_where_nothing_is_clearly_faster(
    final: tuple[float, ...], spread: float, reason: str, iree: IreeCompiler
) -> None:
    found = select(iree, SMALL, OTHERS, Times((2.0, 1.5, 1.6), *[final] * ATTEMPTS, spread=spread))
    assert found.configuration is None
    assert found.reason.startswith(reason)


def test_a_disturbed_timing_is_repeated(iree: IreeCompiler) -> None:
    timer = Times((2.0, 1.0), (2.0, 1.0, 2.5), (2.0, 1.0, 2.0))
    assert select(iree, SMALL, (TILES,), timer).configuration == TILES


def test_a_configuration_that_iree_refuses_is_no_candidate(iree: IreeCompiler) -> None:
    refused = IreeConfiguration((64, 64), (-1, 32), 1)
    assert select(iree, SMALL, (refused,)).reason == "no configuration is used by IREE and right"
    found = select(iree, SMALL, (refused, TILES), Times((2.0, 1.0), (2.0, 1.0, 2.0)))
    assert found.configuration == TILES


def test_real_times_are_taken_in_iree_s_runtime(iree: IreeCompiler) -> None:
    found = select(iree, SMALL, (TILES,))  # which is faster is not asked
    assert found.default_s is not None
    assert found.default_s > 0
    assert (found.configuration is None) == bool(found.reason)


def test_types_that_iree_computes_otherwise_are_left_to_it(iree: IreeCompiler) -> None:
    found = select(iree, Matmul(8, 8, 8, "f64"), (TILES,))
    assert found.reason == "IREE does not compute f64 as such by default"


def test_a_spec_without_any_winner_is_not_written(iree: IreeCompiler) -> None:
    left = Selection(SMALL, None, 1e-3, None, "why")
    message = r"nothing is faster than IREE's default: matmul 64x96x48 .* none: why"
    with pytest.raises(TunerError, match=message):
        tuning_spec(iree, ((left, entry(SMALL)),))


def test_a_program_that_iree_does_not_compile_is_an_error_of_one_line(iree: IreeCompiler) -> None:
    with pytest.raises(IreeCompileError, match=r"^iree-compile: .*expected[^\n]*$"):
        iree.compile("func.func @")


def test_entries_of_several_threads_are_refused(iree: IreeCompiler) -> None:
    with pytest.raises(UsageError, match="trial 5 is of 2 threads, IREE is timed on one"):
        iree_files((entry(SMALL, threads=2),))


def test_without_iree_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="IREE's compiler and runtime is not installed") as raised:
        iree_files((entry(SMALL),))
    assert raised.value.hint == "pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0"


def test_what_iree_cannot_tell_apart_is_one_contraction() -> None:
    assert contraction_of(replace(SMALL, epilogue="bias_relu", align="64", cache="cold")) == SMALL
    assert contraction_of(Matmul(64, 96, 48, "bf16", output="bf16")) == Matmul(64, 96, 48, "bf16")


# Which configurations are proposed to IREE for an entry; nothing is compiled.

LARGE = Matmul(128, 2304, 768)
KNOBS: dict[str, Value] = {"block_m": 64, "block_n": 0, "tile_m": 12, "tile_n": 48, "unroll_k": 2}
BATCH_TILE = "vector_common_parallel = [1, 8, 32, 0]"
PIPELINE = (
    "translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>"
)


def entry_with(problem: Problem, **knobs: Value) -> LibraryEntry:
    return replace(entry(problem), candidate=Candidate.of("matmul_cpu_packed", knobs))


def test_the_tiles_of_the_knobs_come_first_then_their_blocks_with_the_usual_tile() -> None:
    first, second, *others = configurations_for(entry_with(LARGE, **KNOBS))
    assert first == IreeConfiguration((64, 2304), (12, 48), 2)
    assert second == IreeConfiguration((64, 2304), (8, 32), 2)
    assert len(others) == MOST - 2
    assert {each.tile for each in others} == {(8, 32)}


def test_no_size_is_larger_than_its_extent_and_none_is_proposed_twice() -> None:
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


@pytest.mark.parametrize(
    ("problem", "sizes"),
    [
        (
            LARGE,
            "distribution = [64, 256, 0], vector_common_parallel = [8, 32, 0], vector_reduction = [0, 0, 4]",
        ),
        (
            BatchMatmul(3, 128, 2304, 768),
            f"distribution = [1, 64, 256, 0], {BATCH_TILE}, vector_reduction = [0, 0, 0, 4]",
        ),
    ],
)
def test_the_attribute_lists_the_sizes_by_dimension(problem: Problem, sizes: str) -> None:
    text = IreeConfiguration((64, 256), (8, 32), 4).attribute(problem)
    lowering = f"lowering_config = #iree_cpu.lowering_config<{sizes}>"
    assert text == f"#iree_codegen.compilation_info<{lowering}, {PIPELINE}>"
