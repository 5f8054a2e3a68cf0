"""What is expected of a candidate that fails."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tuner.core.errors import CandidateError, Stage


@contextmanager
def fails(stage: Stage, match: str) -> Iterator[None]:
    """Expects that a candidate fails at this stage, for this reason."""
    with pytest.raises(CandidateError, match=match) as caught:
        yield
    assert caught.value.stage is stage
