import dataclasses
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.space.recorded import values
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.machine import Machine
from tuner.core.runs import SEED, SPACE_FILE, WARM_START, InitialConfiguration, RunSettings
from tuner.results.output.formatting import initial_configurations_text
from tuner.targets.backends import Backends
from tuner.targets.interface import Plan


def known_strategy() -> Backends:
    """Returns parts whose strategy is among those of the shipped file, which a run takes by default."""

    def renamed(settings: RunSettings, machine: Machine) -> Plan:
        feasible = fakes.FAKE.outcomes.plan(settings, machine).feasible
        spaces = tuple(dataclasses.replace(space, strategy="matmul_cpu_packed") for space in feasible.spaces)
        return Plan(dataclasses.replace(feasible, spaces=spaces))

    return fakes.backends(plan=renamed)


@pytest.mark.slow
def test_a_second_problem_begins_with_the_best_of_the_first_and_says_so(tuner: Tuner) -> None:
    tuner.backends = known_strategy()
    tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20")
    done = tuner("tune", "matmul", "8x8x16", "--trials", "3", "--json")
    assert "; warm start from 8x8x8 (run 1): 8 points" in done.err
    assert {(point["origin"], point["source"]) for point in done.json["first"]} == {
        ("warm start", "8x8x8 (run 1)")
    }
    assert done.json["best"]["knobs"]["x"] == 7
    assert 0 <= done.json["idle_share"] <= 1
    assert "first     warm start from 8x8x8 (run 1): 8 points" in tuner("show", "run:2").out
    assert tuner("show", "run:2", "--json").json["warm_start"] is True


def test_no_warm_start_begins_with_nothing_known(tuner: Tuner) -> None:
    tuner.backends = known_strategy()
    tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20")
    for flag in ("--no-warm-start", "--fresh"):
        done = tuner("tune", "matmul", "8x8x16", "--trials", "3", "--json", flag)
        assert "warm start" not in done.err
        assert done.json["first"] == []


def test_a_replay_learns_from_the_recordings_that_are_named(tuner: Tuner, tmp_path: Path) -> None:
    file = values.write_recording(tmp_path)
    text = ("tune", "matmul", "8x8x8", "--target", f"replay:{file}", "--trials", "3", "--json")
    best = min(values.outcome_of(n).median_s for n in range(120) if n % 7 != 3)  # type: ignore[union-attr]
    assert tuner(*text).json["first"] == []
    warm = tuner(*text, "--warm-start", str(file)).json
    assert len(warm["first"]) == 8
    assert warm["best"]["median_s"] == best


def test_a_file_to_learn_from_that_is_none_is_reported_in_one_line(tuner: Tuner) -> None:
    assert "gone.t4.json: cannot be read" in tuner.refused(
        "tune", "matmul", "8x8x8", "--warm-start", "gone.t4.json"
    )


def test_a_resumed_run_keeps_what_it_began_with(tuned: Tuner) -> None:
    assert "--resume cannot be combined with --no-warm-start" in tuned.refused(
        "tune", "--resume", "1", "--no-warm-start"
    )


def test_first_points_are_reported_by_where_they_come_from() -> None:
    candidate = Candidate.of("s", {"x": 1})
    warm = [InitialConfiguration(candidate, WARM_START, f"8x8x{k} (run 1)") for k in (8, 16, 8)]
    listed, seed = InitialConfiguration(candidate, SPACE_FILE), InitialConfiguration(candidate, SEED)
    assert initial_configurations_text(()) == ""
    assert (
        initial_configurations_text((listed, seed, seed)) == "1 of the space file, then 2 seed configurations"
    )
    given = "warm start from 8x8x8 (run 1), 8x8x16 (run 1): 3 points"
    assert initial_configurations_text(tuple(warm)) == given
    assert initial_configurations_text((*warm, listed)) == f"{given}, interleaved with 1 of the space file"
