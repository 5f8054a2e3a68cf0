"""Machines, chips and compilers as values, and what disturbs a machine."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.core.fusions import NUMBER_TYPES, STORED, number_type
from tuner.core.gpu import CHIPS, chip_of
from tuner.core.machine import (
    EXTENSIONS,
    Compiler,
    Conditions,
    GpuState,
    Machine,
    Span,
    gpu_machine,
    named_in_full,
    processor_class,
)
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import INPUT_DTYPES
from tuner.core.records import drift

MACHINE = Machine("any", "any", "avx512", True, 4, 8, 32768, 1 << 20, 1 << 25, 1 << 34)
COMPILER = Compiler("LLVM 23", (("numba-cuda-mlir", "0.6.1"), ("torch-mlir", "20261001")), "ab" * 32)


@pytest.mark.parametrize(
    ("isa", "width", "registers"), [("avx512", 64, 32), ("avx2", 32, 16), ("none", 16, 16)]
)
def test_vectors_follow_from_the_instruction_set(isa: str, width: int, registers: int) -> None:
    machine = replace(MACHINE, isa=isa)
    assert (machine.vector_bytes, machine.vector_registers) == (width, registers)


def test_constraints_see_numbers_only() -> None:
    limits = dict(MACHINE.limits())
    assert limits["has_bf16"] == 1
    assert [name for name in limits if name.startswith("has_")] == [*EXTENSIONS]
    assert dict(replace(MACHINE, has_amx_int8=True).limits())["has_amx_int8"] == 1
    assert limits["cores"] == 4
    assert {type(limit) for limit in limits.values()} == {int}


def with_tiles(*words: str) -> Machine:
    """Returns a machine that has bf16, VNNI and AMX, and ``words`` in its name."""
    name = processor_class("Xeon, 2 sockets", "family 6 model 207", ("avx512", *words), (1 << 15, 1 << 21, 0))
    return replace(MACHINE, name=name, has_vnni=True, has_amx_bf16=True, has_amx_int8=True)


def test_a_machine_with_tiles_goes_by_the_name_without_them_too() -> None:
    machine, before = with_tiles("bf16", "vnni", "amx_bf16", "amx_int8"), with_tiles("bf16", "vnni")
    assert machine.is_named(machine.name)
    assert machine.is_named(before.name)
    assert not before.is_named(machine.name)
    assert not machine.is_named(with_tiles("vnni").name)
    assert not machine.is_named("Xeon avx512")


def test_a_name_of_an_older_file_gets_the_words_that_it_lacks() -> None:
    machine = with_tiles("bf16", "vnni", "amx_bf16", "amx_int8")
    assert named_in_full(with_tiles("bf16", "vnni")) == machine
    assert named_in_full(machine) == machine
    assert named_in_full(MACHINE) == MACHINE
    other = replace(machine, name="A100, of another tuner")
    assert named_in_full(other) == other


def test_constraints_see_the_limits_of_a_chip() -> None:
    machine = gpu_machine("simulator", chip_of("sm_90a"), "PTX simulator")
    assert (machine.name, machine.chip, machine.isa) == ("simulator sm_90a", "sm_90a", "ptx")
    assert dict(machine.limits()) == {
        "compute_capability": 90,
        "has_wgmma": 1,
        "max_shared_bytes": 227 * 1024,
        "registers_per_block": 65536,
        "max_threads": 1024,
        "sm_count": 0,
    }


@pytest.mark.parametrize(
    "changed",
    [
        replace(COMPILER, mlir="LLVM 24"),
        replace(COMPILER, packages=(("numba-cuda-mlir", "0.6.2"), ("torch-mlir", "20261001"))),
        replace(COMPILER, pipeline_sha256="cd" * 32),
    ],
)
def test_whatever_may_change_code_changes_the_fingerprint(changed: Compiler) -> None:
    assert changed.fingerprint != COMPILER.fingerprint
    assert "\n" not in changed.fingerprint


def test_changes_name_packages_that_came_and_went() -> None:
    packages = dict(COMPILER.packages)
    went = next(iter(packages))
    later = replace(
        COMPILER, packages=(*((name, packages[name]) for name in packages if name != went), ("new", "1"))
    )
    assert COMPILER.changes_to(later) == (f"{went} {packages[went]} -> none", "new none -> 1")
    assert COMPILER.changes_to(COMPILER) == ()


def test_the_limits_of_a_block_are_the_published_ones() -> None:
    kib = {name: chip.max_shared_bytes / 1024 for name, chip in CHIPS.items()}
    assert kib == {
        "sm_80": 163,
        "sm_86": 99,
        "sm_89": 99,
        "sm_90": 227,
        "sm_90a": 227,
        "sm_100": 227,
        "sm_120": 99,
    }


def test_a_chip_is_found_by_its_name() -> None:
    chip = chip_of("sm_90a")
    assert (chip.capability, chip.is_specific, chip.max_warps) == (90, True, 64)
    assert (chip_of("sm_120").capability, chip_of("sm_120").is_specific) == (120, False)


@pytest.mark.parametrize("name", ["sm_75", "sm_91", "sm_100a", "90", ""])
def test_an_unknown_chip_is_refused_before_the_compiler_sees_it(name: str) -> None:
    with pytest.raises(
        UsageError,
        match=rf"^chip: found '{name}', allowed sm_80, sm_86, [^;]*sm_120(; did you mean sm_(90|100)\?)?$",
    ):
        chip_of(name)


@pytest.mark.parametrize("name", NUMBER_TYPES)
def test_widths_are_those_of_numpy(name: str) -> None:
    assert DTYPES[name].itemsize == NUMBER_TYPES[name].bytes


@pytest.mark.parametrize("name", [name for name, each in NUMBER_TYPES.items() if each.epsilon])
def test_nothing_is_between_one_and_the_next_number(name: str) -> None:
    steps = 1.0 + NUMBER_TYPES[name].epsilon * np.array([0.0, 0.5, 1.0])  # ties go to even
    assert steps.astype(DTYPES[name]).astype(np.float64).tolist() == [1.0, 1.0, steps[2]]


def test_all_but_integers_are_floats() -> None:
    floats = {name for name, each in NUMBER_TYPES.items() if each.epsilon}
    assert floats == {name for name in NUMBER_TYPES if name.startswith(("f", "bf"))}


def test_each_dtype_of_a_problem_has_a_type_in_memory() -> None:
    assert {dtype: number_type(dtype).bytes for dtype in STORED} == {"tf32": 4, "e4m3": 1, "e5m2": 1}
    assert all(number_type(dtype).bytes for dtype in INPUT_DTYPES)
    assert DTYPES["bf16"] == np.dtype(ml_dtypes.bfloat16)


def state(*slowdowns: str, sm_clock_hz: float | None = 1.98e9) -> GpuState:
    return GpuState(sm_clock_hz, 2.6e9, 60.0, 500.0, slowdowns)


def test_slowdowns_of_both_moments_are_reported_once() -> None:
    assert Conditions(state(), state()).slowdowns == ()
    assert Conditions(state("power cap"), state("thermal", "power cap")).slowdowns == ("power cap", "thermal")


def test_a_slowdown_between_the_rounds_is_reported_though_both_ends_had_none() -> None:
    between = Span.of([state(), state("power cap"), state("thermal", "power cap"), state()])
    assert Conditions(state(), state(), between).slowdowns == ("power cap", "thermal")


def test_the_clocks_between_the_rounds_are_kept_from_the_lowest_to_the_highest() -> None:
    clocks = (1.9e9, 1.2e9, None, 1.7e9)
    assert Span.of([state(sm_clock_hz=each) for each in clocks]) == Span(4, 1.2e9, 1.9e9)


def test_clocks_that_are_not_reported_have_no_range() -> None:
    assert Span.of([state(sm_clock_hz=None)]) == Span(1, None, None)


def test_drift_is_the_largest_difference_between_parts() -> None:
    assert drift((1.0,) * 6 + (1.5,) * 6) == pytest.approx(0.5)
    assert drift((1.0, 1.0, 9.0) * 4) == 0.0  # what hits each part alike is no drift


@pytest.mark.parametrize("samples", [(1.0,), (1.0, 2.0, 3.0, 4.0, 5.0)])
def test_of_too_few_samples_no_drift_is_reported(samples: tuple[float, ...]) -> None:
    assert drift(samples) == 0.0
