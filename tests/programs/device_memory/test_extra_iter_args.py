from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

extra_iter_args = pytest.importorskip("tuner.programs.device_memory.iter_args")
alias_sets = pytest.importorskip("tuner.mlir.effects.aliases")

M = "memref<4xf32>"
FOR = text_beside(__file__, "FOR")
IF = f"%r = scf.if %c -> {M} {{ scf.yield %a : {M} }} else {{ scf.yield %b : {M} }}"
WHILE = text_beside(__file__, "WHILE")
MODULE = text_beside(__file__, "MODULE")


def added(body: str) -> tuple[str, Any, list[str]]:
    """Returns the module, the pairs' types, and what the added operands hold."""
    with parsed(MODULE.replace("BODY", body)) as module:
        block = module.body.operations[0].regions[0].blocks[0]
        op = next(op for op in alias_sets.structured_operations(block) if op.name in alias_sets.STRUCTURED)
        result = extra_iter_args.add_iter_args(op, lambda value: alias_sets.is_buffer(value.type))
        assert module.operation.verify()
        kinds = [(str(one.type), str(other.type)) for one, other in result.pairs]
        return str(module), kinds, [each.op.operands[each.number].get_name() for each in result.operands]


@pytest.mark.parametrize(
    ("body", "pairs", "operands"),
    [(FOR, 2, ["%arg0", "%arg1"]), (IF, 1, ["%arg0", "%arg1"]), (WHILE, 3, ["%arg0", "%arg4", "%arg1"])],
)
def test_each_path_gets_a_second_value(body: str, pairs: int, operands: list[str]) -> None:
    _, kinds, held = added(body)
    assert kinds == [(M, M)] * pairs
    assert sorted(held) == sorted(operands)


def test_values_keep_their_places_in_front_of_the_extra_ones() -> None:
    text, _, _ = added(FOR)
    assert f"-> ({M}, index, {M})" in text
    assert f"scf.yield %arg1, %arg4, %arg1 : {M}, index, {M}" in text


def test_what_hands_on_nothing_wanted_stays_as_it_is() -> None:
    body = "scf.for %i = %c0 to %n step %c1 { }"
    text, kinds, operands = added(body)
    assert (kinds, operands) == ([], [])
    assert "iter_args" not in text
