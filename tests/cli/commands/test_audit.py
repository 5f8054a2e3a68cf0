from tests.cli.conftest import Tuner
from tests.results.regression.test_gate import changed


def best_of(tuned: Tuner) -> int:
    """Returns the trial that is exported."""
    trial: int = tuned("export", "matmul", "8x8x8", "--json").json["trial"]
    return trial


def test_bests_that_hold_exit_with_0(tuned: Tuner) -> None:
    done = tuned("audit")
    assert done.code == 0
    assert "matmul 8x8x8 f32 nn none fake  unchanged: the same script and compiler" in done.out
    assert done.out.endswith("1 best audited, 0 flagged\n")


def test_slower_code_is_flagged_and_told_as_stale(tuned: Tuner) -> None:
    tuned.backends = changed(x=9)
    best = best_of(tuned)
    done = tuned("audit")
    assert done.code == 1
    assert "slower: 5 ms, other code, recorded 1 ms in another session (run 2)" in done.out
    assert "stale     slower in an audit: other code" in tuned("show", str(best)).out
    assert best_of(tuned) != best
    assert "  stale  " in tuned("history", "--run", "1").out


def test_json_reports_every_best(tuned: Tuner) -> None:
    tuned.backends = changed(comment="other")
    document = tuned("audit", "--json").json
    (best,) = document["audited"]
    found = [best[key] for key in ("status", "holds", "recorded_s", "now_s")]
    assert found == ["same code", True, 1e-3, None]
    assert document["flagged"] == 0


def test_only_what_is_asked_for_is_audited(tuned: Tuner) -> None:
    assert tuned("audit", "--shape", "9x9x9").out == "0 bests audited, 0 flagged\n"
    assert "max-slowdown: found 'much'" in tuned.refused("audit", "--max-slowdown", "much")
