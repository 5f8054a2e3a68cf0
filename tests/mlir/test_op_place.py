"""Places of ops are read from the reason of a failure."""

from tuner.core.errors import PAYLOAD, SCRIPT, OpPlace, named_places


def test_each_op_is_named_once_in_the_order_of_the_reason() -> None:
    reason = (
        "transform.loop.unroll at script:12:5: wrong op kind; linalg.matmul at payload:2:14: when applied; "
        "transform.loop.unroll at script:12:5: see current operation"
    )
    assert named_places(reason) == (
        OpPlace(SCRIPT, "transform.loop.unroll", 12, 5),
        OpPlace(PAYLOAD, "linalg.matmul", 2, 14),
    )


def test_an_op_without_a_name_has_a_place() -> None:
    assert named_places("an op at payload:3:7: is large") == (OpPlace(PAYLOAD, "an op", 3, 7),)


def test_an_op_is_found_in_a_diagnostic_as_mlir_writes_it() -> None:
    reason = (
        "error: \"payload\":4:10: failed to legalize operation 'bufferization.to_tensor' that was explicitly "
        'marked illegal note: "payload":4:10: see current operation'
    )
    assert named_places(reason) == (OpPlace(PAYLOAD, "bufferization.to_tensor", 4, 10),)


def test_other_reasons_name_no_place() -> None:
    assert named_places("element (0, 1): found 2 at index:1:2, expected 1") == ()
