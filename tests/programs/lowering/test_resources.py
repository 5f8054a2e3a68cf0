"""Data of constants that follow the module."""

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.programs.lowering.resources import array_of, split_payload

TEXT = text_beside(__file__, "TEXT")


def test_a_text_is_split_into_module_and_data() -> None:
    split = split_payload(TEXT)
    assert split.text == "module {\n}\n"
    assert dict(split.resources) == {
        "plain_torch.float32": np.array([1, 2], np.float32).tobytes(),
        '"odd, with } and : and #-}"': b"\x01\xff",
    }


def test_a_text_without_data_stays_as_it_is() -> None:
    split = split_payload("module {\n}\n")
    assert (split.text, dict(split.resources)) == ("module {\n}\n", {})


def test_data_without_a_name_are_refused() -> None:
    with pytest.raises(CandidateError, match="data without a name"):
        split_payload('module {}\n{-#\n "0x04000000"\n#-}')


@pytest.mark.parametrize("data", [b"\x01\x00\x01", b"\x05"])
def test_booleans_are_bytes_or_bits(data: bytes) -> None:
    np.testing.assert_array_equal(array_of(data, (3,), "i1"), [True, False, True])


def test_data_of_another_size_are_refused() -> None:
    with pytest.raises(CandidateError, match=r"\(2, 2\) x f32: found 4 bytes, allowed 16"):
        array_of(b"1234", (2, 2), "f32")
