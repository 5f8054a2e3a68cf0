"""Tokens that loops and branches carry, and regions of the async dialect, mean what their order says."""

import numpy as np
import pytest

from tests.programs.payload_runs import A, B, ended, payload
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.programs.request import FORMS, DeviceOptions

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.streams.async_ops")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_loop_carries_a_token(form: str) -> None:
    text = payload(text_beside(__file__, "a_loop_carries_a_token"))
    found = ended(text, A, B, options=DeviceOptions(form=form))  # type: ignore[arg-type] # one of its words
    np.testing.assert_array_equal(found[1], A + 6)


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_hands_on_a_token(flag: bool) -> None:
    text = payload(text_beside(__file__, "a_branch_hands_on_a_token"), arguments="%flag: i1")
    np.testing.assert_array_equal(ended(text, A, B, flag)[1], A + B + flag)


def test_regions_of_the_async_dialect_hand_on_memory_and_wait_for_one_another() -> None:
    text = payload(text_beside(__file__, "regions_of_the_async_dialect"))
    np.testing.assert_array_equal(ended(text, A, B)[1], A + 1 + B + 1)


def test_groups_of_the_async_dialect_are_refused_by_name() -> None:
    text = payload(text_beside(__file__, "groups_of_the_async_dialect_are_refused_by_name"))
    with pytest.raises(
        CandidateError, match=r"^async\.add_to_group at line .*allowed async\.execute, async\.await"
    ):
        ended(text, A, B)
