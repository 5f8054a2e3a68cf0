import pytest

from tuner.cli.options import parse_candidate, parse_share
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("0%", 0.0), ("150%", 1.5)])
def test_shares(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "-5%", "five"])
def test_a_share_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"share: found .*, allowed a percentage such as 5%"):
        parse_share(text)


def test_a_candidate_reads_back_from_its_text() -> None:
    candidate = Candidate.of("fake", {"x": 4, "order": "ji", "shift": -1})
    assert parse_candidate(candidate.text) == candidate
    assert parse_candidate("fake()") == Candidate.of("fake", {})


@pytest.mark.parametrize("text", ["", "fake", "fake(x)", "fake(=1)", "fake(x=1", "fake x=1"])
def test_a_candidate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"candidate: found .*, allowed 'STRATEGY"):
        parse_candidate(text)
