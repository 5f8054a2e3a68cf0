import pytest

from tuner.core.candidate import Candidate
from tuner.core.runs import ORIGINS, FirstPoint

CANDIDATE = Candidate.of("fake", {"x": 1})


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_point_comes_from_one_of_the_origins(origin: str) -> None:
    assert FirstPoint(CANDIDATE, origin).source == ""


def test_another_origin_is_refused() -> None:
    with pytest.raises(ValueError, match="origin: found 'hunch', allowed warm start, space file, seed"):
        FirstPoint(CANDIDATE, "hunch")
