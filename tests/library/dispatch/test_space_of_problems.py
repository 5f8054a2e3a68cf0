from dataclasses import replace

import pytest

from tests.library.dispatch.rules import configurations, space
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.space.file.reading import parse_space

PACKED, DIRECT = (each.candidate for each in configurations())


@pytest.mark.parametrize(
    "problem", [Matmul(1, 1, 1), Matmul(1, 7, 3), Matmul(3, 5, 2, dtype="f64")], ids=lambda p: p.key
)
def test_a_direct_configuration_applies_to_any_problem(problem: Matmul) -> None:  # type: ignore[valid-type]
    found = space().projected(problem, (PACKED, DIRECT))
    assert found.candidates[1] is not None
    assert found.costs[1] < float("inf")
    assert "linalg.matmul" in space().script(problem, found.candidates[1]).text


def test_a_configuration_that_does_not_apply_has_no_cost() -> None:
    found = space().projected(Matmul(1, 8, 8), (PACKED, Candidate.of("unknown", {})))
    assert found.candidates == (None, None)
    assert found.costs == (float("inf"),) * 2
    assert found.asked.applies == (False, False)


def test_a_problem_that_no_strategy_supports_is_refused() -> None:
    with pytest.raises(UsageError, match="no strategy can do"):
        space().projected(Matmul(8, 8, 8, dtype="f16"), (DIRECT,))


@pytest.mark.slow
def test_the_hash_covers_what_a_configuration_means_and_nothing_else() -> None:
    text = space().space_file.text
    names = ("matmul_cpu_packed", "matmul_cpu_direct")
    known = space().sha256(names)

    def with_text(changed: str) -> str:
        assert changed != text
        return replace(space(), space_file=parse_space(changed, "changed.yaml")).sha256(names)

    assert space().sha256(reversed(names)) == known
    assert with_text("# a comment\n" + text) == known
    assert with_text(text.replace('"tile_m <= m"', '"tile_m < m"')) != known
    assert (
        with_text(text.replace("tile_m: [2, 4, 6, 8, 10, 12, 14]", "tile_m: [2, 4, 6, 8, 10, 12]")) != known
    )
    assert space().sha256(names[:1]) != known
