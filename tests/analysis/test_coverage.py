from tuner.analysis.coverage import UntriedValues, untried_values
from tuner.core.candidate import Candidate
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

SPACE = SearchSpace(
    "tiles",
    (Knob("m", (1, 2, 4, 8)), Knob("order", ("ij", "ji"))),
    (parse("m <= 4 or order == 'none'", "here"),),
)
OTHER = SearchSpace("other", (Knob("m", (1, 2)),))


def test_values_that_are_feasible_and_in_no_trial_are_listed_in_the_order_of_the_file() -> None:
    feasible = FeasibleSet.of((SPACE, OTHER))
    tried = [Candidate.of("tiles", {"m": 2, "order": "ij"}), Candidate.of("other", {"m": 1})]
    assert untried_values(feasible, tried) == (
        UntriedValues("tiles", "m", (1, 4), 3),  # 8 is in no feasible configuration
        UntriedValues("tiles", "order", ("ji",), 2),
        UntriedValues("other", "m", (2,), 2),
    )


def test_nothing_is_listed_where_each_value_was_tried() -> None:
    feasible = FeasibleSet.of((OTHER,))
    assert untried_values(feasible, map(feasible.candidate, range(feasible.rows))) == ()
