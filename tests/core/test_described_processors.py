"""The processors of other machines, as constraints and the code generator see them."""

import pytest

from tuner.core.errors import UsageError
from tuner.core.processors import PROCESSORS, instruction_sets_of, processor_of

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
