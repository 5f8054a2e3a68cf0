"""Steps of a script that change nothing are listed; those that find or change something are not."""

import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.effects.idle_steps import applied_script

pytestmark = pytest.mark.mlir

PAYLOAD, SCRIPT = (text_beside(__file__, name) for name in ("PAYLOAD", "SCRIPT"))


def test_the_steps_that_change_nothing_are_listed_in_the_order_of_the_script() -> None:
    applied = applied_script(SCRIPT, PAYLOAD)
    lines = SCRIPT.splitlines()
    listed = [(place.line, lines[place.line - 1].strip()) for place in applied.idle]
    last = lines.index("    transform.yield")  # the line before it, counted from 1
    assert listed == [
        (9, "transform.apply_licm to %one : !transform.any_op"),  # the first one has hoisted everything
        (last, lines[last - 1].strip()),  # the second canonicalization
    ]
    assert "scf.for" in applied.payload
    assert "{mine}" in applied.payload


def test_a_script_that_fails_is_not_described() -> None:
    with pytest.raises(CandidateError, match=r"transform\.apply_licm at script:5"):
        applied_script(SCRIPT.replace("apply_licm to %loop", "apply_licm to %root"), PAYLOAD)
