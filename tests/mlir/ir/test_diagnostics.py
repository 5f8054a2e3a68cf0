import pytest

from tests.mlir.scripts import PAYLOAD, TILE, script
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

interpreter = pytest.importorskip("tuner.mlir.transform")
ir = pytest.importorskip("tuner.mlir.bindings").ir


def diagnostic(text: str, payload: str = PAYLOAD) -> str:
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(payload, "payload")
        with pytest.raises(CandidateError) as failure:
            interpreter.apply_script(module, interpreter.parse(text, "script"))
    assert failure.value.stage is Stage.COMPILE
    return failure.value.reason


def test_a_diagnostic_names_the_transform_op_and_its_place_in_the_script() -> None:
    found = diagnostic(script("transform.loop.unroll %product {factor = 2} : !transform.any_op"))
    assert found == "transform.loop.unroll at script:5:5: failed to unroll, incorrect type of payload"


def test_a_diagnostic_about_the_payload_names_its_op() -> None:
    found = diagnostic(
        script("transform.structured.vectorize %product vector_sizes [1, 2] : !transform.any_op")
    )
    assert found == "linalg.matmul at payload:2:14: Attempted to vectorize, but failed"


def test_an_op_of_the_payload_is_not_taken_for_one_of_the_script_at_the_same_place() -> None:
    # both texts have an op at 5:5
    text = script("transform.structured.vectorize %product vector_sizes [1, 2] : !transform.any_op")
    assert text.splitlines()[4].startswith("    transform.structured.vectorize")
    payload = "\n\n" + PAYLOAD.replace("  %product = ", "%product =\n    ")
    assert payload.splitlines()[4].startswith("    linalg.matmul")
    assert diagnostic(text, payload).startswith("linalg.matmul at payload:5:5: ")


def test_the_note_of_a_diagnostic_is_named_as_well() -> None:
    sizes = ", ".join(["1"] * 4)
    handles = ", ".join(["!transform.any_op"] * 5)
    text = script(
        f"%tile, %loops:4 = transform.structured.tile_using_for %product tile_sizes [{sizes}]"
        f" : (!transform.any_op) -> ({handles})"
    )
    found = diagnostic(text)
    assert found.startswith("transform.structured.tile_using_for at script:5:23: too many tiles provided")
    assert found.endswith("; linalg.matmul at payload:2:14: target op")


def test_applying_leaves_what_the_payload_says_of_itself() -> None:
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(
            PAYLOAD.replace(
                "return %product : tensor<64x64xf32>", 'return %product : tensor<64x64xf32> loc("mine":7:1)'
            ),
            "payload",
        )
        interpreter.apply_script(
            module,
            interpreter.parse(
                script(TILE.replace("%size", "8").replace(", !transform.param<i64>", "")), "script"
            ),
        )
        assert 'loc("mine":7:1)' in module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
        assert "scf.for" in str(module)
