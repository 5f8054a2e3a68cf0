"""What a program of a dynamic size cannot have: refused by operation, line and a hint."""

import re

import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError, Refusal
from tuner.models.dynamic.specialization import Unproved, specialized

# the body of a program -> the type of its result, and how its refusal begins
REFUSED = {
    "COMPUTED_SHAPE": ("tensor<?xf32>", "tensor.reshape at line 11:8: its shape is computed"),
    "OTHER_SHAPE": ("tensor<?x?xf32>", "tensor.reshape at line 11:8: found n x 4, which is not n x 2"),
    "TURNED": (
        "tensor<?x?xf32>",
        "tensor.reshape at line 11:8: a dimension that depends on n is not",
    ),
    "SOFTMAX": ("tensor<?x4xf32>", "linalg.softmax at line 11:8: there is no rule"),
    "TWICE": ("tensor<?x4xf32>", "tensor.insert_slice at line 11:8: n elements at 0 of 2n: its padding"),
    "BEFORE_OTHERS": ("tensor<?x4xf32>", "tensor.concat at line 10:8: only the last part may have"),
    "BEFORE_THE_FIRST": ("tensor<1x4xf32>", "tensor.extract_slice at line 11:8: elements n-2 to n-1 of n"),
    "PAST_THE_END": (
        "tensor<2x4xf32>",
        "tensor.extract_slice at line 10:8: elements 0 to 2 of n",
    ),
    "FROM_N_ON": (
        "tensor<?x4xf32>",
        "tensor.extract_slice at line 11:8: n elements from n",
    ),
    "UNDECIDED": ("tensor<?x4xf32>", "cf.assert at line 11:3: a number that depends on the size n"),
    "INNER": ("tensor<?xf32>", "tensor.collapse_shape at line 11:8: a dimension that depends on n"),
    "HALF": ("tensor<?xf32>", "tensor.empty at line 11:8: a size that is not a multiple of"),
    "DIVISOR": ("tensor<?xi32>", "arith.divsi at line 14:10: a divisor that padding may make 0"),
    "INDEX": ("tensor<?xf32>", "tensor.extract at line 17:16: an index that padding may put outside"),
    "ELEMENT": ("tensor<4xf32>", "tensor.extract at line 10:15: its number depends on the size n"),
    "WINDOW": ("tensor<1xf32>", "linalg.conv_1d at line 12:8: it reduces over n at the index"),
    "TWO_SIZES": ("tensor<?x4xf32>", "linalg.generic at line 11:8: sizes n and n-1 of one loop"),
    "CONTROL": ("tensor<?x4xf32>", "scf.if at line 11:8: there is no rule"),
    "LOOP_NUMBER": ("tensor<?xf32>", "tensor.extract at line 15:16: an index that padding may put"),
    "COMPUTED_PADDING": ("tensor<?x4xf32>", "tensor.pad at line 10:8: it pads with numbers that it computes"),
    "CONDITION": ("tensor<?xi32>", "cf.assert at line 16:5: a condition that padding may not fulfil"),
    "PADDED_BELOW_0": ("tensor<?x4xf32>", "tensor.pad at line 11:8: it pads by -n+2, which is below 0"),
    "PADDED_BY_N": ("tensor<?x4xf32>", "tensor.pad at line 10:8: it pads by n in front: allowed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operation_that_padding_would_make_wrong_is_refused_by_its_name_and_line(name: str) -> None:
    type_, begins = REFUSED[name]
    body = text_beside(__file__, name).rstrip()
    text = text_beside(__file__, "WHOLE").replace("BODY", body).replace("TYPE", type_)
    refused = specialized(text, None, 8)
    assert isinstance(refused, Refusal)
    assert refused.text.startswith(f"payload: {begins}"), refused.text
    assert refused.hint


def test_a_loops_number_is_an_index_of_a_tensor_that_is_as_long_as_the_static_size() -> None:
    body = text_beside(__file__, "LOOP_NUMBER").rstrip()
    text = text_beside(__file__, "WHOLE").replace("BODY", body).replace("TYPE", "tensor<?xf32>")
    assert not isinstance(specialized(text, None, 4), Refusal)
    assert isinstance(specialized(text, None, 5), Refusal)


def test_a_program_without_a_dynamic_size_has_none_to_choose() -> None:
    refused = specialized(text_beside(__file__, "STATIC"), None, 8)
    assert isinstance(refused, Refusal)
    assert re.match("payload: func.func at line 1:1: no argument has a dynamic size", refused.text)


def test_a_program_on_memory_is_refused_by_its_argument() -> None:
    with pytest.raises(CandidateError, match=r"argument 0: found memref<\?x4xf32>, allowed tensors"):
        specialized(text_beside(__file__, "MEMORY"), None, 8)


def test_all_refused_operations_are_known_but_not_what_reads_them() -> None:
    first, second = (text_beside(__file__, name).rstrip() for name in ("BEFORE_OTHERS", "PADDED_BY_N"))
    lines = (
        first.replace("%r =", "%long ="),
        "%e = math.exp %long : tensor<?x4xf32>",
        second.replace("%r =", "%padded ="),
        "%r = arith.addf %e, %padded : tensor<?x4xf32>",
    )
    body = "\n  ".join(lines)
    text = text_beside(__file__, "WHOLE").replace("BODY", body).replace("TYPE", "tensor<?x4xf32>")
    refused = specialized(text, None, 8)
    assert isinstance(refused, Unproved)
    reasons = [why for _, why in refused.operations]
    assert [why.partition(":")[0] for why in reasons] == [
        "only the last part may have a size that depends on n",
        "it pads by n in front",
    ]


def test_an_argument_with_other_sizes_than_its_type_is_refused() -> None:
    text = text_beside(__file__, "SIZES")
    refused = specialized(text, None, 8)
    assert isinstance(refused, Unproved)
    assert "tuner.sizes: found 2 sizes for tensor<?xf32>, allowed one for each ?" in refused.text
    unread = specialized(text.replace('"n", "n"', '"n*n"'), None, 8)
    assert isinstance(unread, Unproved)
    assert "found the size 'n*n', allowed one such as n, 2n+1, m or 8" in unread.text
