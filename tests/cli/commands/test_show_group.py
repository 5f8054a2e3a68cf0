"""``tuner show campaign:N``: a campaign with the program that it tuned, as text and as JSON."""

from tests.cli.conftest import Tuner
from tests.db.test_groups import CAMPAIGN, MEMBERS, RESULT
from tests.db.values import COMPILER, MACHINE
from tuner.db.store import Store


def stored(tuner: Tuner, *, has_program: bool) -> None:
    with Store.open(str(tuner.database)) as store:
        campaign = store.begin_campaign(CAMPAIGN, MEMBERS, MACHINE, COMPILER, "0.1.0", None)
        if has_program:
            store.set_program_result(campaign, RESULT)


def test_the_program_of_a_campaign_is_shown_with_its_fusions_and_baselines(tuner: Tuner) -> None:
    stored(tuner, has_program=True)
    lines = tuner("show", "campaign:1").out.splitlines()
    assert "campaign  1: 2 problems, 0 trials in 0 s" in lines
    assert "loops   g1 linalg.pooling: no schedule" in lines
    assert "time    10 us a call, 20 us without tuning" in lines
    assert "gain    2.00 times as fast (95 % interval 1.90 .. 2.10)" in lines
    assert "reliable yes" in lines
    assert lines[-1].split() == ["onnxruntime", "-", "-", "not", "compared:", "not", "installed"]
    (row,) = (line.split() for line in lines if line.startswith("g0"))
    assert row[:9] == ["g0", "contraction", "15", "us", "8", "us", "reliable", "100%", "50%"]
    document = tuner("show", "campaign:1", "--json").json
    assert len(document["problems"]) == 2
    program = document["program"]
    assert (program["call_s"], program["speedup_interval"]) == (1e-5, [1.9, 2.1])
    assert [each["origin"] for each in program["groups"]] == ["tuned"]
    assert [each["reason"] for each in program["baselines"]] == [None, "not installed"]


def test_a_campaign_of_a_file_of_shapes_has_no_program(tuner: Tuner) -> None:
    stored(tuner, has_program=False)
    assert tuner("show", "campaign:1", "--json").json["program"] is None
    assert tuner("show", "campaign:1").code == 0


def test_what_is_no_campaign_is_refused(tuner: Tuner) -> None:
    stored(tuner, has_program=False)
    assert "campaign" in tuner.refused("show", "campaign:7")
    assert "campaign:1 cannot be combined with --run" in tuner.refused("show", "campaign:1", "--ablation")
    assert "campaign" in tuner.refused("show", "campaign:one")
