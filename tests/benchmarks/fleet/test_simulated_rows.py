import json

import pytest

from benchmarks.fleet.simulated_rows import LARGE, row_of, scenarios
from benchmarks.results_file import RESULTS

COMMITTED = json.loads((RESULTS / "fleet_simulated.json").read_text())["rows"]


def test_every_fleet_is_simulated_once_for_a_question() -> None:
    found = [(scenario.question, scenario.fleet) for scenario in scenarios()]
    assert len(set(found)) == len(found) == len(COMMITTED)
    assert [row["question"] for row in COMMITTED] == [question for question, _fleet in found]


def test_the_largest_has_1000_nodes() -> None:
    assert LARGE.compilers + LARGE.devices == 1000


@pytest.mark.parametrize("index", [0, 2])
def test_figures_committed_are_those_of_the_code(index: int) -> None:
    scenario = list(scenarios())[index]
    assert json.loads(json.dumps(row_of(scenario))) == COMMITTED[index]
