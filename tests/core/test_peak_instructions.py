"""By which instructions the peak of a processor is measured."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.test_machines import MACHINE
from tuner.core.processors import peak_set, peak_source, peak_text

PLAIN = replace(MACHINE, has_bf16=False)


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
    machine = replace(PLAIN, **has)
    assert (peak_set(dtype, machine), peak_source(dtype, machine)) == (name, source)


def test_types_with_the_same_instructions_are_named_together() -> None:
    both = replace(PLAIN, has_amx_bf16=True, has_amx_int8=True)
    assert peak_text(both) == "f32, f64 by FMA; bf16, i8 by AMX"
    assert peak_text(PLAIN) == "f32, f64, bf16 by FMA; i8 by products of 16-bit integers"
