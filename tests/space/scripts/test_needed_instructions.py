"""What a script needs is worked out from the ops that it calls."""

import pytest

from tuner.space.scripts.requirements import instructions_needed

AMX = '"tuner.amx_block"(%block) {tiles_m = 2 : i64} : (!transform.any_op) -> ()'
VNNI = '"tuner.vnni_block"(%block) {{tile_m = 6 : i64, lanes = {} : i64}} : (!transform.any_op) -> ()'
PAIRS = '"tuner.pair_block"(%block) {{tile_m = 6 : i64, dots = {} : i64}} : (!transform.any_op) -> ()'
PATTERN = "transform.apply_patterns.x86.vector_contract_to_{}_dot_product"


@pytest.mark.parametrize(
    ("line", "dtype", "needs"),
    [
        (AMX, "bf16", ("amx-bf16",)),
        (AMX, "i8", ("amx-int8",)),
        (f"    // {AMX}", "bf16", ()),
        ('"tuner.vnni_block"(%block) : (!transform.any_op) -> ()', "i8", ("avx512", "vnni")),
        (VNNI.format(16), "i8", ("avx512", "vnni")),
        (VNNI.format(8), "i8", ("vnni",)),
        (f"{VNNI.format(8)}\n{VNNI.format(16)}", "i8", ("avx512", "vnni")),
        (PAIRS.format(1), "bf16", ("avx512-bf16",)),
        (PAIRS.format(0), "bf16", ()),
        (PATTERN.format("amx"), "i8", ("amx-int8",)),
        (PATTERN.format("packed_type"), "bf16", ("avx512-bf16",)),
        (PATTERN.format("packed_type"), "f32", ()),
        ("transform.structured.vectorize %tile vector_sizes [12, 32, 1] : !transform.any_op", "f32", ()),
    ],
)
def test_ops_decide_what_a_script_needs(line: str, dtype: str, needs: tuple[str, ...]) -> None:
    assert instructions_needed(f"module {{\n{line}\n}}\n", dtype) == needs


def test_several_needs_are_sorted() -> None:
    assert instructions_needed(f"{VNNI.format(8)}\n{AMX}", "i8") == ("amx-int8", "vnni")
