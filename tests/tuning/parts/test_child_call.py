"""What goes wrong in a child process is said with the name of what was done there."""

from functools import partial

import pytest

from tuner.core.errors import CandidateError, Stage, TunerError, UsageError
from tuner.tuning.parts.child_call import call_in_child


def fail(stage: Stage) -> None:
    raise CandidateError(stage, "too wide")


def test_what_does_not_even_parse_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match=r"^apply: too wide$"):
        call_in_child("apply", partial(fail, Stage.BIND), 60.0)


def test_what_fails_later_is_none_of_the_users() -> None:
    with pytest.raises(TunerError, match=r"^apply: too wide$") as caught:
        call_in_child("apply", partial(fail, Stage.COMPILE), 60.0)
    assert not isinstance(caught.value, UsageError | CandidateError)
