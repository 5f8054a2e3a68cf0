import pytest
import yaml

from tests.cli.conftest import Tuner
from tests.fakes import bind
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.interfaces import Script
from tuner.space.file.reading import parse_space

PROBLEM = ("matmul", "8x8x8")


def fails_when_wide(chosen: Candidate) -> Script:
    """Makes candidates of a wide x fail when they are compiled."""
    knobs = dict(chosen.choices)
    if int(knobs["x"]) >= 12:
        knobs |= {"deed": "wrong", "at": "verify"}
    return bind(Candidate.of(chosen.strategy, knobs))


@pytest.fixture(scope="module")
def tuner(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives commands a database of 60 trials, of which 24 failed."""
    backends = fakes.backends(
        bind=lambda *_: fails_when_wide, plan=fakes.plan({"x": tuple(range(20)), "comment": ("a", "b", "c")})
    )
    tuner = Tuner(tmp_path_factory.mktemp("suggest") / "results.db", backends)
    assert tuner("tune", *PROBLEM, "--sampler", "exhaustive", "--trials", "60").code == 0
    return tuner


@pytest.mark.slow
def test_lines_of_a_search_space_file_are_suggested(tuner: Tuner) -> None:
    done = tuner("space", *PROBLEM, "--suggest")
    assert done.code == 0
    assert "      # would have saved 24 failed trials (24 of them here, 1 problem); p-value: " in done.out
    assert "      # verify: " in done.out
    assert yaml.safe_load(done.out) == {"strategies": {"fake": {"constraints": ["x < 12"]}}}
    entry = "    ops: [matmul]\n    dtypes: [f32]\n    knobs: {x: [1, 20]}\n    constraints:"
    whole = done.out.replace("    constraints:", entry)
    (strategy,) = parse_space(whole, "suggested.yaml").strategies
    assert [each.text for each in strategy.constraints] == ["x < 12"]


@pytest.mark.slow
def test_suggestions_as_json(tuner: Tuner) -> None:
    (document,) = tuner("space", *PROBLEM, "--suggest", "--json").json
    assert document["chance"] < 1e-6
    assert document["reason"]
    del document["chance"], document["reason"]
    found = {"strategy": "fake", "constraint": "x < 12", "stage": "verify"}
    assert document == found | {"trials": 24, "trials_here": 24, "problems": 1}


def test_nothing_is_suggested_for_another_problem_or_for_too_few_failures(tuner: Tuner) -> None:
    assert tuner("space", "matmul", "9x9x9", "--suggest", "--json").json == []
    assert tuner("space", *PROBLEM, "--suggest", "--min-support", "25", "--json").json == []
    assert tuner("space", *PROBLEM, "--suggest", "--since", "2999-01-01", "--json").json == []
    done = tuner("space", *PROBLEM, "--suggest", "--min-support", "25")
    assert done.out == (
        "# matmul 8x8x8 f32 nn none for fake:\n"
        "# nothing to suggest: no constraint explains 25 failures or more, and no success, beyond chance\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--suggest", "--min-support", "0"), "min-support: found 0, allowed 1 or more"),
        (("--min-support", "5"), "space: --min-support needs --suggest"),
        (("--since", "2026-01-31"), "space: --since needs --suggest"),
        (("--suggest", "--target", "replay:f.json"), "target replay:f.json runs no candidates"),
    ],
)
def test_words_that_would_do_nothing_are_refused(
    tuner: Tuner, options: tuple[str, ...], message: str
) -> None:
    assert message in tuner.refused("space", *PROBLEM, *options)
