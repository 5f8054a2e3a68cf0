import pytest

from tests.cli.conftest import Tuner


def test_the_ablation_of_a_run_in_tables(tuned: Tuner) -> None:
    done = tuned("show", "run:1", "--ablation")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("ablation  run 1: 20 measured trials of fake")
    headers = [number for number, line in enumerate(lines) if line.startswith("knob ")]
    assert [lines[number].split()[1] for number in headers] == ["held", "without"]
    for number in headers:
        assert sorted(line.split()[0] for line in lines[number + 1 : number + 3]) == ["comment", "x"]
    assert lines[-1].split()[:3] == ["fake", "20", "0"]


@pytest.mark.parametrize("options", [("run:1",), ("1",), ("--run", "1")])
def test_the_ablation_as_json(tuned: Tuner, options: tuple[str, ...]) -> None:
    document = tuned("show", *options, "--ablation", "--json").json
    assert (document["run"], document["strategy"], document["measured"]) == (1, "fake", 20)
    knob = next(each for each in document["knobs"] if each["knob"] == "x")
    assert (knob["best"], knob["held"]) == (7, 0)
    assert knob["gain"] is None  # x = 0 was tried twice
    comment = next(each for each in document["knobs"] if each["knob"] == "comment")
    assert comment["gain"]["trials"] == 10
    assert comment["gain"]["slower"] == pytest.approx(0, abs=0.05)


def test_too_few_trials_are_refused_in_one_line(tuner: Tuner) -> None:
    assert tuner("tune", "matmul", "8x8x8", "--trials", "5").code == 0
    done = tuner("show", "run:1", "--ablation")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: run 1: ablation: found 5 measured trials of fake, it needs 20 or more\n"
