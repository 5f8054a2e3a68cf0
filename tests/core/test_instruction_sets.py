"""What a processor offers, and the refusal of code that needs more."""

from dataclasses import replace

import pytest

from tests.core.test_machines import MACHINE
from tuner.core.errors import UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.processors import instruction_sets_of, missing_on, refusal, require_instructions

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
