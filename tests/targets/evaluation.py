"""What tests of evaluators share: the stage and reason of a failure, and a generator of random numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from tuner.core.errors import CandidateError, Stage


@contextmanager
def fails(stage: Stage, match: str) -> Iterator[None]:
    """Expects that a candidate fails at this stage, for this reason."""
    with pytest.raises(CandidateError, match=match) as caught:
        yield
    assert caught.value.stage is stage


def rng() -> np.random.Generator:
    return np.random.default_rng(0)
