"""The drawing of public names that readers rate: any seed works, and the same seed draws the same names."""

from tests.draw_names import drawn, printed, public_names


def test_a_seed_draws_the_same_names_each_time_and_another_seed_others() -> None:
    names = [[name for name, _ in drawn(seed, 60)] for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]
    assert len(set(names[0])) == 60


def test_a_drawn_name_is_printed_with_its_signature_and_its_docstring() -> None:
    definition = dict(public_names())["core.problem.parse_shape"]
    text = printed("core.problem.parse_shape", definition)
    assert text.startswith("core.problem.parse_shape\n    def parse_shape(text: str)")
    assert "Raises UsageError" in text
