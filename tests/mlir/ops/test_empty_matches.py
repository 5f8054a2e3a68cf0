"""A match that finds nothing fails where a schedule would do nothing, and only there."""

import pytest

from tests.mlir.scripts import PAYLOAD, alternatives
from tests.texts import filled
from tuner.core.errors import CandidateError, Stage, named_places
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.targets.cpu.compiler import CpuCompiler

ANY = "!transform.any_op"


def match(result: str, name: str, attributes: str = "", scope: str = "%root") -> str:
    kind = f"({ANY}) -> {ANY}"
    return f'{result} = transform.structured.match ops{{["{name}"]}} {attributes} in {scope} : {kind}'


def foreach(handle: str, line: str) -> str:
    return f"transform.foreach {handle} : {ANY} {{\n^bb0(%each: {ANY}):\n{line}\n}}"


def tile(handle: str, name: str = "x") -> str:
    loop = f"%{name}, %{name}_loop = transform.structured.tile_using_for {handle} tile_sizes [8]"
    return f"{loop} : ({ANY}) -> ({ANY}, {ANY})"


def script(*ops: str) -> str:
    return filled(__file__, "SCRIPT", any=ANY, ops="\n".join(ops))


def apply(text: str) -> str:
    with transform.new_context(), ir.Location.unknown():
        payload, bound = transform.parse(PAYLOAD, "payload"), transform.parse(text, "script")
        before = str(bound)
        try:
            transform.apply_script(payload, bound)
        finally:
            assert str(bound) == before
        return str(payload)


def reason(text: str) -> str:
    with pytest.raises(CandidateError) as caught:
        apply(text)
    assert caught.value.stage is Stage.COMPILE
    return caught.value.reason


def test_an_op_that_the_payload_has_not_is_reported_with_what_needs_it() -> None:
    found = reason(script(match("%p", "linalg.generic"), tile("%p")))
    assert found == (
        "transform.structured.match at script:3:6: for transform.structured.tile_using_for at script:4:15, "
        "found no linalg.generic in the payload, which has linalg.matmul"
    )
    places = [("transform.structured.match", 3), ("transform.structured.tile_using_for", 4)]
    assert [(place.op, place.line) for place in named_places(found)] == places


def test_attributes_that_no_op_has_are_reported_with_those_there_are() -> None:
    function = match("%f", "func.func", 'attributes{sym_name = "matmull"}')
    found = reason(script(function, match("%p", "linalg.matmul", scope="%f"), tile("%p")))
    assert 'found no func.func with sym_name = "matmull" in the payload' in found
    assert found.endswith('did you mean sym_name = "matmul"?')


def test_a_region_that_is_not_selected_needs_nothing() -> None:
    missing, there = match("%p", "linalg.generic"), match("%q", "linalg.matmul")
    ops = (tile("%p", "a"), tile("%q", "b"))
    assert "scf.for" in apply(script(missing, there, alternatives("order", *ops, selected="1")))
    alone = script(missing, alternatives("order", ops[0], "", selected="0"))
    assert reason(alone).startswith("transform.structured.match at script:3:6: for ")


@pytest.mark.parametrize(
    "ops",
    [
        (match("%p", "scf.for"), f"transform.apply_licm to %p : {ANY}"),
        (match("%p", "scf.for"),),
        (match("%q", "linalg.matmul"), tile("%q"), match("%p", "linalg.generic"), tile("%p", "y")),
        (match("%p", "linalg.generic"), foreach("%p", tile("%each"))),
    ],
    ids=["a cleanup", "unused", "after another match", "foreach"],
)
def test_what_may_be_absent_is_no_failure(ops: tuple[str, ...]) -> None:
    apply(script(*ops))


def test_a_name_that_mlir_does_not_have_is_reported_with_its_line_and_the_nearest() -> None:
    broken = script(match("%p", "linalg.matmull"), tile("%p"))
    assert reason(broken) == (
        "transform.structured.match at script:3:6: found no linalg.matmull in the payload, "
        "which has linalg.matmul; did you mean linalg.matmul?"
    )
    with pytest.raises(CandidateError, match=r"which has linalg\.matmul, linalg\.fill, .*did you mean"):
        CpuCompiler().compile(Matmul(32, 32, 32), Script.of(broken))
    # after other matches and in foreach as well
    loop = foreach("%q", match("%p", "linalg.fil", scope="%each"))
    assert "found no linalg.fil in the payload" in reason(script(match("%q", "linalg.matmul"), loop))
