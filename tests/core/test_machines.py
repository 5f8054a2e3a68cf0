"""Machines, chips, processors and compilers as values, and what disturbs a machine."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tuner.core import machine as machines
from tuner.core import processors, roofline
from tuner.core.dtypes import CPU_DTYPES, INPUT_DTYPES, NUMBER_TYPES, STORED, number_type
from tuner.core.errors import UsageError
from tuner.core.gpu import CHIPS, chip_of
from tuner.core.machine import Machine, gpu_machine
from tuner.core.numpy_types import DTYPES
from tuner.core.processors import PROCESSORS, instruction_sets_of, processor_of
from tuner.core.records import Conditions, GpuState, Span, drift
from tuner.core.runs import Compiler

MACHINE = Machine("any", "any", "avx512", True, 4, 8, 32768, 1 << 20, 1 << 25, 1 << 34)
PLAIN = replace(MACHINE, has_bf16=False, processor="AMD EPYC")
COMPILER = Compiler("LLVM 23", (("numba-cuda-mlir", "0.6.1"), ("torch-mlir", "20261001")), "ab" * 32)


@pytest.mark.parametrize(("isa", "vectors"), [("avx512", (64, 32)), ("avx2", (32, 16)), ("none", (16, 16))])
def test_vectors_follow_from_the_instruction_set(isa: str, vectors: tuple[int, int]) -> None:
    machine = replace(MACHINE, isa=isa)
    assert (machine.vector_bytes, machine.vector_registers) == vectors


def test_constraints_see_numbers_alone_the_limits_of_a_chip_and_of_a_described_processor() -> None:
    limits = dict(MACHINE.limits())
    assert limits["has_bf16"] == 1
    assert [name for name in limits if name.startswith("has_")] == [*machines.EXTENSIONS, "has_fast_bf16"]
    assert dict(replace(MACHINE, has_amx_int8=True).limits())["has_amx_int8"] == 1
    assert limits["cores"] == 4
    assert {type(limit) for limit in limits.values()} == {int}
    machine = gpu_machine("simulator", chip_of("sm_90a"), "PTX simulator")
    assert (machine.name, machine.chip, machine.isa) == ("simulator sm_90a", "sm_90a", "ptx")
    memory = {"max_shared_bytes": 227 * 1024, "registers_per_block": 65536}
    others = {"compute_capability": 90, "has_wgmma": 1, "max_threads": 1024, "sm_count": 0}
    assert dict(machine.limits()) == memory | others
    machine = processor_of("sapphirerapids").machine
    offers = "avx512 bf16 vnni amx_bf16 amx_int8"
    assert machine.name == f"sapphirerapids (described, {offers}, caches 48K/2M/105M)"
    limits = dict(machine.limits())
    assert (limits["vector_bytes"], limits["has_amx_bf16"], limits["cores"]) == (64, 1, 56)
    assert (limits["l1_bytes"], limits["l2_bytes"], limits["l3_bytes"]) == (48 << 10, 2 << 20, 105 << 20)
    assert dict(processor_of("znver3").machine.limits())["has_vnni"] == 0


def with_tiles(*words: str) -> Machine:
    """Returns a machine that has bf16, VNNI and AMX, and ``words`` in its name."""
    family, caches = "family 6 model 207", (1 << 15, 1 << 21, 0)
    name = machines.processor_class("Xeon, 2 sockets", family, ("avx512", *words), caches)
    return replace(MACHINE, name=name, has_vnni=True, has_amx_bf16=True, has_amx_int8=True)


def test_a_machine_with_tiles_goes_by_the_name_without_them_too_which_older_files_have() -> None:
    machine, before = with_tiles("bf16", "vnni", "amx_bf16", "amx_int8"), with_tiles("bf16", "vnni")
    names = (machine.name, before.name, with_tiles("vnni").name, "Xeon avx512")
    assert [machine.is_named(name) for name in names] == [True, True, False, False]
    assert not before.is_named(machine.name)
    assert machines.named_in_full(before) == machines.named_in_full(machine) == machine
    for other in (MACHINE, replace(machine, name="A100, of another tuner")):
        assert machines.named_in_full(other) == other


def test_whatever_may_change_code_changes_the_fingerprint() -> None:
    for changed in (
        replace(COMPILER, mlir="LLVM 24"),
        replace(COMPILER, packages=(("numba-cuda-mlir", "0.6.2"), ("torch-mlir", "20261001"))),
        replace(COMPILER, pipeline_sha256="cd" * 32),
    ):
        assert changed.fingerprint != COMPILER.fingerprint
        assert "\n" not in changed.fingerprint


def test_changes_name_packages_that_came_and_went() -> None:
    (went, version), *kept = COMPILER.packages
    later = replace(COMPILER, packages=(*kept, ("new", "1")))
    assert COMPILER.changes_to(later) == (f"{went} {version} -> none", "new none -> 1")
    assert COMPILER.changes_to(COMPILER) == ()


def test_the_limits_of_chips_are_the_published_ones() -> None:
    kib = {name: chip.max_shared_bytes / 1024 for name, chip in CHIPS.items()}
    small, large = dict.fromkeys(("sm_86", "sm_89", "sm_120"), 99), ("sm_90", "sm_90a", "sm_100")
    assert kib == {"sm_80": 163, **small, **dict.fromkeys(large, 227)}
    chip = chip_of("sm_90a")
    assert (chip.capability, chip.is_specific, chip.max_warps) == (90, True, 64)
    assert (chip_of("sm_120").capability, chip_of("sm_120").is_specific) == (120, False)


@pytest.mark.parametrize("name", ["sm_75", "sm_91", "sm_100a", "90", ""])
def test_an_unknown_chip_is_refused_before_the_compiler_sees_it(name: str) -> None:
    allowed = r"sm_80, sm_86, [^;]*sm_120(; did you mean sm_(90|100)\?)?"
    with pytest.raises(UsageError, match=rf"^chip: found '{name}', allowed {allowed}$"):
        chip_of(name)


@pytest.mark.parametrize("name", NUMBER_TYPES)
def test_widths_and_epsilons_are_those_of_numpy(name: str) -> None:
    each = NUMBER_TYPES[name]
    assert DTYPES[name].itemsize == each.bytes
    assert bool(each.epsilon) == name.startswith(("f", "bf"))
    steps = 1.0 + each.epsilon * np.array([0.0, 0.5, 1.0])  # nothing is between 1 and the next; ties to even
    assert steps.astype(DTYPES[name]).astype(np.float64).tolist() == [1.0, 1.0, steps[2]]


STORED_BYTES = {"tf32": 4, "tf32x3": 4, "bf16x6": 4, "e4m3": 1, "e5m2": 1}


def test_each_dtype_of_a_problem_has_a_type_in_memory() -> None:
    assert {dtype: number_type(dtype).bytes for dtype in STORED} == STORED_BYTES
    assert all(number_type(dtype).bytes for dtype in INPUT_DTYPES)
    assert DTYPES["bf16"] == np.dtype(ml_dtypes.bfloat16)


def state(*slowdowns: str, sm_clock_hz: float | None = 1.98e9) -> GpuState:
    return GpuState(sm_clock_hz, 2.6e9, 60.0, 500.0, slowdowns)


def test_rounds_keep_slowdowns_clocks_and_the_largest_drift() -> None:
    assert Conditions(state(), state()).slowdowns == ()
    assert Conditions(state("power cap"), state("thermal", "power cap")).slowdowns == ("power cap", "thermal")
    between = Span.of([state(), state("power cap"), state("thermal", "power cap"), state()])
    assert Conditions(state(), state(), between).slowdowns == ("power cap", "thermal")
    assert Span.of([state(sm_clock_hz=each) for each in (1.9e9, 1.2e9, None, 1.7e9)]) == Span(4, 1.2e9, 1.9e9)
    assert Span.of([state(sm_clock_hz=None)]) == Span(1, None, None)
    assert drift((1.0,) * 6 + (1.5,) * 6) == pytest.approx(0.5)
    assert drift((1.0, 1.0, 9.0) * 4) == 0.0  # what hits each part alike is not drift
    assert drift((1.0,)) == drift((1.0, 2.0, 3.0, 4.0, 5.0)) == 0.0


# The processors of other machines, as constraints and the code generator see them.
ZEN_4 = ("avx2", "avx512", "avx512-bf16", "vnni")
SETS = {
    **dict.fromkeys(("x86-64-v3", "haswell", "znver3"), ("avx2",)),
    "alderlake": ("avx2", "vnni"),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512"), ("avx2", "avx512")),
    **dict.fromkeys(("cascadelake", "icelake-server"), ("avx2", "avx512", "vnni")),
    **dict.fromkeys(("znver4", "znver5"), ZEN_4),
    **dict.fromkeys(("sapphirerapids", "graniterapids"), (*ZEN_4, "amx-bf16", "amx-int8")),
    **dict.fromkeys(("neoverse-n1", "apple-m1"), ("neon", "dotprod")),
    **dict.fromkeys(("neoverse-v1", "neoverse-v2"), ("neon", "dotprod", "i8mm", "arm-bf16")),
}


def test_each_processor_and_machine_offers_what_it_has_and_an_unknown_one_is_refused() -> None:
    assert {name: instruction_sets_of(each.machine) for name, each in PROCESSORS.items()} == SETS
    assert len({each.machine.name for each in PROCESSORS.values()}) == len(PROCESSORS)
    assert processor_of("znver3").features == "+avx2,+fma,+f16c,-sse4a"
    assert processor_of("alderlake").features == "+avx2,+fma,+f16c,+avxvnni"
    assert processor_of("graniterapids").features.endswith("+avx512vnni,+amx-tile,+amx-bf16,+amx-int8")
    assert processor_of("neoverse-v2").features == "+neon,+lse,+dotprod,+i8mm,+bf16"
    assert processor_of("neoverse-v2").machine.logical_cores == 72  # one thread a core
    line = r"^cpu: found 'saphirerapids', allowed x86-64-v3, .*, apple-m1; did you mean sapphire"
    with pytest.raises(UsageError, match=line):
        processor_of("saphirerapids")
    tiles = replace(PLAIN, has_vnni=True, has_amx_bf16=True, has_amx_int8=True)
    for machine, sets in (
        (tiles, "avx2 avx512 vnni amx-bf16 amx-int8"),
        *((MACHINE, "avx2 avx512 avx512-bf16"), (replace(PLAIN, isa="avx2"), "avx2")),
        *((replace(PLAIN, isa="none"), ""), (gpu_machine("simulator", chip_of("sm_90"), "simulator"), "")),
    ):
        assert instruction_sets_of(machine) == tuple(sets.split())


# By which instructions the peak of a processor is measured.
@pytest.mark.parametrize(
    ("has", "dtype", "name", "source"),
    [
        ("amx_bf16 bf16", "bf16", "amx-bf16", "AMX"),
        ("amx_int8 bf16", "bf16", "avx512-bf16", "AVX512-BF16"),
        ("", "bf16", "", "FMA"),
        ("amx_int8 vnni", "i8", "amx-int8", "AMX"),
        ("amx_bf16 vnni", "i8", "vnni", "VNNI"),
        ("", "i8", "", "products of 16-bit integers"),
        ("amx_bf16 vnni", "f32", "", "FMA"),
    ],
)
def test_the_fastest_products_are_taken(has: str, dtype: str, name: str, source: str) -> None:
    machine = replace(PLAIN, **{f"has_{each}": True for each in has.split()})  # type: ignore[arg-type]
    assert (roofline.peak_set(dtype, machine), roofline.peak_source(dtype, machine)) == (name, source)


@pytest.mark.parametrize(
    ("name", "is_fast"),
    [
        ("Xeon (family 6 model 207, avx512 bf16 vnni, caches 48K/2M/260M)", False),
        ("sapphirerapids (described, avx512 bf16, caches 48K/2M/105M)", False),
        ("Cooper Lake (family 6 model 85, avx512 bf16 vnni, caches 32K/1M/38M)", True),
        ("AMD EPYC (family 25 model 17, avx512 bf16 vnni, caches 32K/1M/32M)", True),
    ],
)
def test_dot_products_of_bf16_that_are_slower_than_f32_are_no_peak(name: str, is_fast: bool) -> None:
    machine = replace(MACHINE, name=name)
    assert (machine.has_fast_bf16, machine.multiplies_pairs) == (is_fast, is_fast)
    assert dict(machine.limits())["has_fast_bf16"] == is_fast
    assert roofline.peak_source("bf16", machine) == ("AVX512-BF16" if is_fast else "FMA")
    assert replace(machine, has_amx_bf16=True).multiplies_pairs
    assert not replace(machine, has_bf16=False).has_fast_bf16


def test_types_with_the_same_instructions_and_what_is_missing_are_named() -> None:
    both = replace(PLAIN, has_amx_bf16=True, has_amx_int8=True)
    integers = "products of 16-bit integers"
    plain = {"f32": "FMA", "f64": "FMA", "bf16": "FMA", "f16": "FMA", "i8": integers}
    for machine, expected in ((both, plain | {"bf16": "AMX", "i8": "AMX"}), (PLAIN, plain)):
        named = [part.split(" by ") for part in roofline.peak_text(machine).split("; ")]
        sources = {dtype: source for dtypes, source in named for dtype in dtypes.split(", ")}
        assert sorted(sources) == sorted(CPU_DTYPES)
        assert {dtype: sources[dtype] for dtype in expected} == expected
    assert roofline.peak_source("bf16x6", both) == "AMX"
    needs = ("vnni", "avx512", "amx-int8")
    assert processors.missing_on(PLAIN, needs) == ("vnni", "amx-int8")
    assert str(processors.refusal(PLAIN, needs)) == "needs vnni and amx-int8, which AMD EPYC does not offer"
    assert processors.refusal(PLAIN, ("avx2",)) is None
    processors.require_instructions(PLAIN, ("avx512",), "best.mlir")
    line = r"^best.mlir: needs amx-fp16, which AMD EPYC does not offer; tuner t"  # script of a later version
    with pytest.raises(UsageError, match=line):
        processors.require_instructions(PLAIN, ("amx-fp16",), "best.mlir")
