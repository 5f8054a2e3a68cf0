"""The processors of other machines, as constraints and the code generator see them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.test_machines import MACHINE
from tuner.core.errors import UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.processors import (
    PROCESSORS,
    instruction_sets_of,
    missing_on,
    peak_set,
    peak_source,
    peak_text,
    processor_of,
    refusal,
    require_instructions,
)

SETS = {
    "haswell": ("avx2",),
    "skylake-avx512": ("avx2", "avx512"),
    "cascadelake": ("avx2", "avx512", "vnni"),
    "icelake-server": ("avx2", "avx512", "vnni"),
    "sapphirerapids": ("avx2", "avx512", "avx512-bf16", "vnni", "amx-bf16", "amx-int8"),
    "graniterapids": ("avx2", "avx512", "avx512-bf16", "vnni", "amx-bf16", "amx-int8"),
    "znver3": ("avx2",),
    "znver4": ("avx2", "avx512", "avx512-bf16", "vnni"),
    "znver5": ("avx2", "avx512", "avx512-bf16", "vnni"),
}


def test_each_processor_offers_what_its_products_do() -> None:
    assert {name: instruction_sets_of(each.machine) for name, each in PROCESSORS.items()} == SETS


def test_constraints_see_a_described_processor_like_one_that_is_here() -> None:
    machine = processor_of("sapphirerapids").machine
    assert machine.name == (
        "sapphirerapids (described, avx512 bf16 vnni amx_bf16 amx_int8, caches 48K/2M/105M)"
    )
    limits = dict(machine.limits())
    assert (limits["vector_bytes"], limits["has_amx_bf16"], limits["cores"]) == (64, 1, 56)
    assert (limits["l1_bytes"], limits["l2_bytes"], limits["l3_bytes"]) == (48 << 10, 2 << 20, 105 << 20)
    assert dict(processor_of("znver3").machine.limits())["has_vnni"] == 0


def test_names_of_described_processors_differ() -> None:
    assert len({each.machine.name for each in PROCESSORS.values()}) == len(PROCESSORS)


def test_features_are_those_of_its_instruction_sets() -> None:
    assert processor_of("znver3").features == "+avx2,+fma"
    assert processor_of("graniterapids").features.endswith("+avx512vnni,+amx-tile,+amx-bf16,+amx-int8")


def test_an_unknown_processor_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(
        UsageError, match=r"^cpu: found 'saphirerapids', allowed haswell, .*, znver5; did you mean sapphire"
    ):
        processor_of("saphirerapids")


# What a processor offers, and the refusal of code that needs more.

PLAIN = replace(MACHINE, has_bf16=False, processor="AMD EPYC")


def test_a_machine_offers_what_it_has() -> None:
    tiles = replace(PLAIN, has_vnni=True, has_amx_bf16=True, has_amx_int8=True)
    assert instruction_sets_of(tiles) == ("avx2", "avx512", "vnni", "amx-bf16", "amx-int8")
    assert instruction_sets_of(MACHINE) == ("avx2", "avx512", "avx512-bf16")
    assert instruction_sets_of(replace(PLAIN, isa="avx2")) == ("avx2",)
    assert instruction_sets_of(replace(PLAIN, isa="none")) == ()
    assert instruction_sets_of(gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")) == ()


def test_what_is_missing_is_named_in_the_order_of_the_needs() -> None:
    assert missing_on(PLAIN, ("vnni", "avx512", "amx-int8")) == ("vnni", "amx-int8")
    assert refusal(PLAIN, ("vnni", "avx512", "amx-int8")) == (
        "needs vnni and amx-int8, which AMD EPYC does not offer"
    )
    assert refusal(PLAIN, ("avx2",)) == ""


def test_a_set_that_this_tuner_does_not_know_is_missing() -> None:
    """As in the header of a script of a later version."""
    with pytest.raises(
        UsageError, match=r"^best.mlir: needs amx-fp16, which AMD EPYC does not offer; tuner t"
    ):
        require_instructions(PLAIN, ("amx-fp16",), "best.mlir")
    require_instructions(PLAIN, ("avx512",), "best.mlir")


# By which instructions the peak of a processor is measured.

PEAK_INSTRUCTIONS_PLAIN = replace(MACHINE, has_bf16=False)


@pytest.mark.parametrize(
    ("has", "dtype", "name", "source"),
    [
        ({"has_amx_bf16": True, "has_bf16": True}, "bf16", "amx-bf16", "AMX"),
        ({"has_amx_int8": True, "has_bf16": True}, "bf16", "avx512-bf16", "AVX512-BF16"),
        ({}, "bf16", "", "FMA"),
        ({"has_amx_int8": True, "has_vnni": True}, "i8", "amx-int8", "AMX"),
        ({"has_amx_bf16": True, "has_vnni": True}, "i8", "vnni", "VNNI"),
        ({}, "i8", "", "products of 16-bit integers"),
        ({"has_amx_bf16": True, "has_vnni": True}, "f32", "", "FMA"),
    ],
)
def test_the_fastest_products_are_taken(has: dict[str, Any], dtype: str, name: str, source: str) -> None:
    machine = replace(PEAK_INSTRUCTIONS_PLAIN, **has)
    assert (peak_set(dtype, machine), peak_source(dtype, machine)) == (name, source)


def test_types_with_the_same_instructions_are_named_together() -> None:
    both = replace(PEAK_INSTRUCTIONS_PLAIN, has_amx_bf16=True, has_amx_int8=True)
    assert peak_text(both) == "f32, f64 by FMA; bf16, i8 by AMX"
    assert peak_text(PEAK_INSTRUCTIONS_PLAIN) == "f32, f64, bf16 by FMA; i8 by products of 16-bit integers"
