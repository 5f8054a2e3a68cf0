"""What commands print of values that several of them show, of a run under way, and into files."""

import contextlib
import io
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from tests.analysis.test_importance import grid, of
from tests.results.report.values import with_candidate
from tests.trials import measurement, run, trial
from tests.tuning.fakes import MACHINE, baseline, settings
from tuner.analysis.importance import TooFew, ablate
from tuner.core.candidate import Value
from tuner.core.errors import PAYLOAD, SCRIPT, Failure, OpPlace, Stage, UsageError
from tuner.core.machine import PresentLoad
from tuner.core.matmul import Matmul
from tuner.core.progress import FusionEnded, FusionsFound, FusionStarted, WeightsPacked
from tuner.core.queries import Counts
from tuner.core.records import Conditions, GpuState, Measurement, Span, Verdict
from tuner.core.reliability import RELIABLE, unreliable
from tuner.core.requests import Campaign, CampaignSettings
from tuner.core.runs import WARM_START, CampaignPlace, InitialConfiguration
from tuner.core.serialization import count_text, interval_text, seconds_text
from tuner.core.trials import StoredTrial
from tuner.results.explanations import FailedOp, explain_document, explain_lines
from tuner.results.output import campaign_progress, compile_progress, formatting, progress
from tuner.results.output.ablation import ablation_document, ablation_lines
from tuner.results.output.files import write_atomically, write_folder
from tuner.results.output.formatting import one_line, table_lines, varying_columns, wrapped
from tuner.results.output.progress import PlainProgress, share_done, trial_line
from tuner.results.output.run_result import gpu_lines
from tuner.results.output.tables import history_table
from tuner.tuning import events
from tuner.tuning.budget import remeasurement_s
from tuner.tuning.events import Event, NoiseMeasured, RunStarted, TrialDone


def test_strategies_are_compared_where_the_best_one_has_too_few_trials() -> None:
    few = tuple(of(number, "quick", {"tile": number}, measurement(1e-4)) for number in range(40, 44))
    ablation = ablate((*grid(), *few))
    assert isinstance(ablation, TooFew)
    first, *_, quick, slow = ablation_lines(run(), ablation, RELIABLE)
    assert first == "ablation  run 3: found 4 measured trials of quick, it needs 20 or more to compare knobs"
    assert (quick.split()[:2], slow.split()[:2]) == (["quick", "4"], ["s", "32"])
    assert ablation_lines(run(), ablation, unreliable("load"))[3] == "reliable  no: load"
    document = ablation_document(run(), ablation)
    assert (document["knobs"], len(document["strategies"])) == ((), 2)


FAILED = trial(7, Failure(Stage.COMPILE, "linalg.fill at payload:7:16: Attempted to vectorize, but failed"))
OP = "transform.structured.vectorize"
OPS = (
    FailedOp(OpPlace(SCRIPT, OP, 12, 5), f"{OP} %fill"),
    FailedOp(OpPlace(PAYLOAD, "linalg.fill", 7, 16), f"%cleared = linalg.fill {'x' * 90}"),
)


def test_an_op_is_reported_with_its_place_and_its_line_within_the_columns() -> None:
    assert explain_lines(FAILED, OPS) == [
        "trial 107 failed at stage compile: linalg.fill at payload:7:16: Attempted to",
        "          vectorize, but failed",
        "problem   matmul 8x8x8 f32 nn none",
        "strategy  fake",
        "knobs     knob_0=7",
        "script    line 12, column 5: transform.structured.vectorize",
        "          transform.structured.vectorize %fill",
        "payload   line 7, column 16: linalg.fill",
        f"          %cleared = linalg.fill {'x' * 44}...",
        "texts     tuner show 107 --json",
    ]
    assert max(map(len, explain_lines(FAILED, OPS))) == formatting.SUMMARY_COLUMNS
    first = {"text": "script", "op": OP, "line": 12, "column": 5, "line_text": f"{OP} %fill"}
    assert explain_document(FAILED, OPS)["failed_ops"][0] == first
    assert explain_document(FAILED, ())["failed_ops"] == []


def test_what_did_not_fail_is_reported_with_its_time() -> None:
    timed, verified = (explain_lines(trial(7, each), ()) for each in (measurement(1e-3), Verdict(0.5, 64)))
    assert timed == ["trial 107 did not fail: measured, 1 ms, unknown"]
    assert verified == ["trial 107 did not fail: verified, not timed"]


HEADER = ("id", "problem", "share", "what")
ROWS = [("1", "matmul 8x8x8", "12.5", "one two three four five six"), ("10", "matmul 16x8x8", "7", "one")]
WIDE = 53  # of all of it
NOTE = "(columns hidden: share; widen the terminal, or --json)"


def test_columns_are_aligned_and_those_that_say_the_same_become_a_line() -> None:
    assert table_lines(("id", "name"), [("1", "one"), ("10", "t")]) == ["id  name", " 1  one", "10  t"]
    assert table_lines(("id", "name"), []) == ["id  name"]
    whole = table_lines(HEADER, ROWS, None, ("share",))
    assert max(map(len, whole)) == WIDE
    assert table_lines(HEADER, ROWS, WIDE, ("share",)) == whole
    header, rows, shared = varying_columns(("id", "op"), [("1", "a"), ("2", "a")], ("id", "op"))
    assert (header, rows, shared) == (("id",), [("1",), ("2",)], ["in every row: op a"])
    assert varying_columns(("id", "op"), [("1", "a"), ("2", "a")], ("id",))[2] == []
    assert varying_columns(("id", "op"), [("1", "a")], ("id", "op")) == (("id", "op"), [("1", "a")], [])


def test_long_cells_go_on_in_the_next_line_and_a_column_that_can_be_spared_goes_first() -> None:
    assert table_lines(HEADER, ROWS, WIDE - 1) == [
        "id  problem        share  what",
        " 1  matmul 8x8x8    12.5  one two three four five",
        "                          six",
        "10  matmul 16x8x8      7  one",
    ]
    *lines, note = table_lines(HEADER, ROWS, WIDE - 4, ("share", "problem"))
    assert lines[0].split() == ["id", "problem", "what"]
    assert note == NOTE
    assert table_lines(HEADER, ROWS, WIDE - 4, ("nothing", "share"))[-1] == NOTE


def test_a_column_is_no_narrower_than_its_longest_word_where_another_can_be() -> None:
    header, row = ("id", "reliability", "operations", "knobs"), ("1", "unreliable", "add " * 9, "x=1 " * 9)
    lines = table_lines(header, [row], 45)
    assert lines[0].split() == [*header]
    assert max(map(len, lines)) <= 45


def test_words_are_broken_before_a_line_is_too_long_and_numbers_never() -> None:
    for columns in (80, 60, 40, 26):
        rows = [("123456789", "x" * 100, "y" * 30), ("2", "z", "")]
        lines = table_lines(("id", "long", "longer"), rows, columns)
        assert max(map(len, lines)) <= columns
        assert "123456789" in lines[1]
        assert sum(line.count("x") for line in lines) == 100


def test_values_have_a_unit_that_suits_them_and_agree_with_their_noun() -> None:
    given = (12.3456, 1.0, 0.0123456, 1.5e-5, 2e-8, 0.0)
    assert [*map(seconds_text, given)] == ["12.35 s", "1 s", "12.35 ms", "15 us", "20 ns", "0 ns"]
    assert interval_text((1e-3, 2e-3)) == "1 ms .. 2 ms"
    assert formatting.knobs_line((("x", 1), ("order", "mnk"))) == "knobs     x=1 order=mnk"
    assert formatting.knobs_line(()) == "knobs     none"
    assert (formatting.speed_text(None), formatting.speed_text(123.456)) == ("-", "123.5 GFLOP/s")
    assert [count_text(count, "trial") for count in (0, 1, 2)] == ["0 trials", "1 trial", "2 trials"]


def test_a_message_is_one_line_that_moves_no_terminal() -> None:
    for text, line in (
        ("two\n  lines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred \u202eüber 核", "\\x1b[31mred \\u202eüber 核"),
        ("x" * 2001, "x" * 2000 + "..."),
    ):
        assert one_line(text) == line


def test_lines_of_a_summary_end_at_80_columns_below_their_text_or_where_the_terminal_does() -> None:
    given = "tied      with 25 (-0.0%), 4 (-0.0%), 16 (+0.0%): not shown to differ by more than noise; etc"
    command = f"next      tuner export --trial 7 -o {'long/' * 20}best.mlir"
    first, second, kept = wrapped([given, command])
    assert first == given[: len(first)]
    assert 70 < len(first) <= 80
    assert second == " " * 10 + given[len(first) + 1 :]
    assert kept == command
    assert wrapped([f"code      sha256 {'0' * 80}"])[-1] == " " * 10 + "0" * 80
    assert max(map(len, wrapped([f"compiler A: tuner 0.1.0, {'LLVM 23 ' * 20}"]))) <= 80
    line = "word " * 30
    assert max(map(len, wrapped([line], 40))) <= 40
    assert wrapped([line], None) == [line]
    assert wrapped(["a", "", "b"]) == ["a", "", "b"]


COOL = GpuState(1.98e9, 2.619e9, 41.0, 120.4)
HOT = GpuState(1.41e9, 2.619e9, 83.0, 699.8, ("power cap", "thermal"))


def measured(cold_median_s: float | None, conditions: Conditions | None) -> Measurement:
    return Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3), True, cold_median_s, conditions)


def test_cold_time_sensors_clocks_and_slowdowns_are_reported_where_there_are_any() -> None:
    assert gpu_lines(measured(None, None)) == []
    cool = "SM 1980 MHz, memory 2619 MHz, 41 C, 120 W"
    assert gpu_lines(measured(1.5e-3, Conditions(COOL, HOT))) == [
        "cold      1.5 ms with the cache flushed before",
        f"sensors   {cool}; after: SM 1410 MHz, memory 2619 MHz, 83 C, 700 W",
        "throttled by power cap, thermal: the GPU can be faster than this time",
    ]
    (silent,) = gpu_lines(measured(None, Conditions(GpuState(None, None, None, None), COOL)))
    assert silent.startswith("sensors   nothing reported; after: SM")
    between = Span(34, 1.41e9, 1.98e9, ("power cap",))
    assert gpu_lines(measured(None, Conditions(COOL, COOL, between)))[1:] == [
        "clocks    SM 1410 to 1980 MHz in 34 readings between the rounds",
        "throttled by power cap: the GPU can be faster than this time",
    ]
    assert len(gpu_lines(measured(None, Conditions(COOL, COOL, Span(2, None, None))))) == 1


def of_knobs(number: int, **knobs: Value) -> StoredTrial:
    return with_candidate(trial(number, measurement(1e-3)), "fake", knobs)


def test_what_all_trials_share_stands_below_the_table_and_columns_that_vary_in_it() -> None:
    *rows, shared, below = history_table((of_knobs(1, x=1, y=2, z="a"), of_knobs(2, x=1, y=3, z="a")))
    assert [row.split("  ")[-1] for row in rows[1:]] == ["fake y=2", "fake y=3"]
    assert shared == "in every row: run 3, problem matmul 8x8x8 f32, target fake, threads 1"
    assert below == "fake everywhere: x=1 z=a"
    one = of_knobs(1, x=1)
    header, *_, shared, _ = history_table((one, replace(one, run=4, threads=2)))
    assert header.split()[:3] == ["trial", "run", "threads"]
    assert shared == "in every row: problem matmul 8x8x8 f32, target fake"
    assert history_table((of_knobs(1, x=1, y=2),))[-1].endswith("fake x=1 y=2")


def test_many_knobs_go_on_below_where_a_terminal_ends() -> None:
    trials = tuple(of_knobs(n, **{f"knob_{value}": n + value for value in range(12)}) for n in (1, 2))
    whole = history_table(trials)
    assert max(map(len, whole)) > 140
    narrow = history_table(trials, 80)
    assert max(map(len, narrow)) <= 80
    assert " ".join(" ".join(narrow[-2:]).split()).endswith("target fake, threads 1, strategy fake")
    firsts = [line.split()[0] for line in narrow[1:-2]]
    assert [first for first in firsts if "=" not in first] == ["101", "102"]
    assert len(firsts) == 6  # two lines of knobs below each trial
    names = {word for line in whole for word in line.split() if "=" in word}
    assert names == {word for line in narrow for word in line.split() if "=" in word}
    assert "knob_11=13" in "".join("".join(history_table(trials, 30)).split())
    other = with_candidate(trial(3, measurement(1e-3)), "other", {"knob": 7})
    mixed = history_table((*trials, other), 80)
    assert "       other knob=7" in mixed
    assert next(line for line in mixed if "knob_0=1" in line).startswith("       fake knob_0=1 ")


# A run under way.

STARTED = RunStarted(3, settings(trials=10), MACHINE, 20, 15, proposed_before=0)
RECORD = trial(4, measurement(1e-6)).record
DONE = TrialDone(104, 4, RECORD, Counts(5, 3, 0, 2, 1), RECORD, elapsed_s=10.0)
BASELINE = baseline(settings().problem, 1, 0)


def started(trials: int | None, budget_s: float | None, feasible: int) -> RunStarted:
    return replace(STARTED, settings=settings(trials=trials, budget_s=budget_s), feasible=feasible)


def busy(busy: float, stolen: float, processors: int) -> events.MachineBusy:
    return events.MachineBusy(3, PresentLoad(busy, stolen), processors)


def test_a_trial_line_reports_counts_best_and_time_left() -> None:
    line = "5/10 trials: 3 measured, 2 failed, 1 reused (same code); best 1 us (1.024 GFLOP/s); 20 s left"
    assert trial_line(DONE, STARTED) == line
    disturbed = trial_line(replace(DONE, best_reliability=unreliable("load")), STARTED)
    assert "best 1 us (1.024 GFLOP/s) (unreliable); 20 s left" in disturbed
    assert "left" not in trial_line(DONE, started(None, 5.0, 5000))
    assert trial_line(DONE, started(None, 60.0, 5000)).startswith("5 trials: ")


@pytest.mark.parametrize(
    ("trials", "budget_s", "feasible", "line"),
    [
        (100, None, 9, "9/9 trials: "),
        (100, None, 1000, "9/100 trials: "),
        (None, 60.0, 9, "9/9 trials: "),
        (None, 60.0, 5000, "9 trials: "),
        (9, 60.0, 5000, "9/9 trials: "),
        (None, None, 5000, "9 trials: "),
    ],
)
def test_the_total_is_of_trials_that_can_be_tried_and_not_of_a_space_that_no_budget_lasts_for(
    trials: int | None, budget_s: float | None, feasible: int, line: str
) -> None:
    assert trial_line(replace(DONE, number=8), started(trials, budget_s, feasible)).startswith(line)


def test_after_the_last_trial_the_final_re_measurement_is_left_unless_nothing_is_timed() -> None:
    of_nine = started(100, None, 9)
    last = replace(DONE, number=8, elapsed_s=120.0)
    assert progress.time_left_s(last, of_nine) == pytest.approx(remeasurement_s(120.0, 8))
    assert remeasurement_s(120.0, 8) < 10
    assert progress.time_left_s(replace(last, counts=Counts(9, 0, 9, 0)), of_nine) == 0.0
    assert progress.time_left_s(last, started(None, None, 5000)) is None


def test_a_terminal_of_80_columns_shows_the_time_left_whatever_else_is_left_out() -> None:
    many = replace(DONE, number=4999, counts=Counts(5000, 3500, 0, 1500, 1100), elapsed_s=10.0)
    many = replace(many, best_reliability=unreliable("load"))
    begun = started(None, 7200.0, 10**7)
    assert len(trial_line(many, begun)) > 80
    for columns in (72, 60, 40):
        line = trial_line(many, begun, columns)
        assert len(line) <= columns
        assert line.endswith("; 7190 s left")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, highlight=False)
    with Progress(BarColumn(24), TextColumn("{task.description}", markup=False), console=console) as bar:
        observe = progress.LiveProgress(console, bar)
        observe(begun)
        observe(many)
        bar.refresh()
    assert "; best 1 us (unreliable); 7190 s left" in screen.getvalue()


def test_time_left_and_the_share_done_are_those_of_the_nearer_budget() -> None:
    for trials, budget_s, left_s, share in (
        *((10, None, 20.0, 0.5), (None, 60.0, 50.0, 1 / 6), (10, 13.0, 3.0, 10 / 13), (10, 300.0, 20.0, 0.5)),
        *((None, 5.0, 0.0, 1.0), (100, 20.0, 10.0, 0.5), (5, 5.0, 0.0, 1.0)),
    ):
        chosen = started(trials, budget_s, 5000)
        assert progress.time_left_s(DONE, chosen) == pytest.approx(left_s, rel=0.1)
        assert share_done(DONE, chosen) == pytest.approx(share)
    again = replace(started(None, 20.0, 5000), remeasured_s=4.0)  # no budget counts these
    assert progress.time_left_s(DONE, again) == 14.0


BEGUN = "run 3: matmul 8x8x8 f32 nn none, fake, 1 thread on fake; 15 of 20 combinations"
LEAVES_NOTHING = RunStarted(3, settings(), MACHINE, 20, 15, 0, ("'x > 9' leaves f nothing",))
BUSY = "busy with other programs; times"
TIMED = "baseline: FakeBLAS 1.0 2 ms (0.000512 GFLOP/s)"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            RunStarted(3, settings(), MACHINE, 1, 1, 0, ()),
            "run 3: matmul 8x8x8 f32 nn none, fake, 1 thread on fake; 1 of 1 combination is",
        ),
        (events.SpaceExhausted(1, False), "search: the one feasible configuration has been tried"),
        (LEAVES_NOTHING, f"{BEGUN} are feasible\nnote: 'x > 9' leaves f nothing"),
        (STARTED, BEGUN),
        (busy(1.84, 0.0, 2), f"note: 1.8 of 2 processors are {BUSY} will be unreliable\nhint: once"),
        (busy(1.0, 0.0, 1), f"note: 1.0 of 1 processor is {BUSY}"),
        (busy(0.1, 0.9, 2), "note: the hypervisor gives 0.9 of 2 away; times will"),
        (events.BaselineMeasured(BASELINE), TIMED),
        (events.BaselineMeasured(BASELINE, unreliable("load")), f"{TIMED}, unreliable"),
        (events.BaselineFailed("no BLAS"), "baseline: not measured: no BLAS"),
        (events.SpaceExhausted(20, False), "search: all 20 feasible configurations have been tried"),
        (
            events.SpaceExhausted(9, True),
            "search: all 9 feasible configurations of the sample have been tried",
        ),
        (events.RemeasurementStarted(8), "final re-measurement: timing the best 8 again, interleaved"),
        (NoiseMeasured(0.0123), "noise floor: 1.2%"),
        (NoiseMeasured(16.81), "noise floor: none, times of the same code differ by more than 5%"),
        (DONE, "trial 104: measured"),
        (events.WaitsForLock("process 7"), "waiting for process 7: it times on the same device"),
        (
            events.WaitsForLock("process 7", True),
            "waiting for process 7: it times on the same device; the budget goes by",
        ),
        (events.LockWaitEnded("process 7"), "the budget is spent: times next to process 7"),
        (
            events.WaitedForLock(44.1, 60.2),
            "note: 44 of 60 s went by waiting for other tuners\nhint: ",
        ),
        (events.WaitsForNode("no node compiles cpu"), "waiting for the fleet: no node compiles cpu"),
    ],
)
def test_every_event_has_a_line(event: Event, text: str) -> None:
    assert progress.event_line(event, settings()).startswith(text)


@pytest.mark.parametrize(("seconds", "end"), [(3.0, "; 3 of 4 s"), (6.0, "; 6 s, the budget is spent")])
def test_a_campaign_that_outlasts_its_budget_says_so(seconds: float, end: str) -> None:
    limits = CampaignSettings("", None, 4.0, 0, ())
    campaign = Campaign(1, "", run().created, limits, "running", seconds, seconds, ())
    assert campaign_progress.CampaignState(campaign, 20).line.endswith(end)


LAYERS = ("model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj", "head")


@pytest.mark.parametrize("columns", [80, 120])
def test_the_live_table_has_a_line_for_each_problem_with_its_name_and_result_and_timed_ones_first(
    columns: int,
) -> None:
    problem = Matmul(128, 4096, 4096, dtype="bf16", epilogue="bias_gelu")
    runs = tuple(
        replace(run(), settings=settings(problem=problem), campaign=CampaignPlace(1, place, name, 32))
        for place, name in enumerate(LAYERS)
    )
    limits = CampaignSettings("", 100, None, 0, ())
    state = campaign_progress.CampaignState(
        Campaign(1, "", run().created, limits, "running", 1.0, 1.0, runs), 900
    )
    state.best[1] = replace(RECORD, outcome=measurement(1.234e-3))
    screen = io.StringIO()
    Console(file=screen, width=columns).print(campaign_progress.progress_table(state, 2, columns))
    rows = [line.split() for line in screen.getvalue().splitlines() if "matmul" in line]
    assert [row[1][:16] for row in rows] == ["model.layers.0.m", "model.layers.0.s"]
    assert "1.234" in rows[0]
    assert max(map(len, screen.getvalue().splitlines())) <= columns


def test_a_campaign_counts_to_the_trials_that_its_problems_have() -> None:
    limits = CampaignSettings("", 100, None, 0, ())
    campaign = Campaign(1, "", run().created, limits, "running", 1.0, 1.0, ())
    assert campaign_progress.CampaignState(campaign, 18).line.startswith("0/18 trials: ")
    assert campaign_progress.CampaignState(campaign, 1800).line.startswith("0/100 trials: ")


def test_plain_lines_are_rare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    observe = PlainProgress()
    observe(STARTED)
    for _ in range(100):
        observe(DONE)
    observe(NoiseMeasured(0.01))
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["run 3", "noise floor"]
    monkeypatch.setattr("tuner.results.output.progress.PLAIN_EVERY_S", 0.0)
    observe(DONE)
    assert "5/10 trials" in capsys.readouterr().err


def test_a_terminal_gets_a_line_that_moves_for_the_run_under_way_and_a_pipe_plain_lines() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, highlight=False)
    with Progress("{task.description}", console=console) as bar:
        observe = progress.LiveProgress(console, bar)
        observe(STARTED)
        observe(DONE)
        bar.refresh()
        observe(STARTED)  # a program tunes one matmul after another
        assert [task.description for task in bar.tasks] == ["compiling candidates"]
    assert "15 of 20 combinations are feasible" in screen.getvalue()
    assert "5/10 trials: 3 measured" in screen.getvalue()
    with progress.progress() as plain:
        assert isinstance(plain, PlainProgress)


COMPILING = (FusionsFound(4), FusionStarted("linalg.matmul"), FusionEnded(), FusionStarted("math.exp"))


def test_compiling_shows_fusions_then_weights_and_the_seconds_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tuner.results.output.compile_progress.time.monotonic", lambda: now[0])
    state = compile_progress.CompileState()
    lines = []
    for event in COMPILING:
        now[0] += 1.0
        state.take(event)
        lines.append(state.line)
    assert lines == [
        "0 of 4 fusions compiled",
        "0 of 4 fusions compiled, now linalg.matmul",
        "1 of 4 fusions compiled, 9 s left, now linalg.matmul",
        "1 of 4 fusions compiled, 12 s left, now math.exp",
    ]
    assert state.share == 0.25
    state.take(FusionsFound(1))  # a task was given up: its next configuration
    assert state.line.startswith("1 of 2 fusions compiled")
    state.take(WeightsPacked(0, 64 << 20))
    now[0] += 2.0
    state.take(WeightsPacked(16 << 20, 64 << 20))
    assert state.line == "1 of 2 fusions compiled, 16 of 64 MiB packed, 6 s left"
    assert state.share == 0.25


def test_compiling_is_a_bar_on_a_terminal_and_at_most_one_line_in_a_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, highlight=False)
    bar = Progress("{task.description}", console=console)
    with contextlib.ExitStack() as shown:
        observe = compile_progress.LiveCompileProgress(bar, shown)
        assert screen.getvalue() == ""  # nothing is shown of a program that is kept
        for event in COMPILING:
            observe(event)
        assert [(task.completed, task.total) for task in bar.tasks] == [(0.25, 1.0)]
    assert "1 of 4 fusions compiled" in screen.getvalue()
    with compile_progress.compile_progress() as plain:
        for event in COMPILING:
            plain(event)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("tuner.results.output.compile_progress.PLAIN_EVERY_S", 0.0)
    with compile_progress.compile_progress() as plain:
        for event in COMPILING:
            plain(event)
    assert capsys.readouterr().err == "compiling: 0 of 4 fusions compiled\n"


def phases(*observed: Event) -> list[str]:
    """Returns what the moving line of a terminal says after each event."""
    console = Console(file=io.StringIO(), force_terminal=True, width=200, highlight=False)
    shown = []
    with Progress("{task.description}", console=console) as bar:
        observe = progress.LiveProgress(console, bar)
        for event in observed:
            observe(event)
            shown.append(str(bar.tasks[0].description))
    return shown


def test_a_terminal_keeps_no_line_that_the_result_repeats_and_a_log_keeps_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=200, highlight=False)
    observed = (INITIAL, TIMED_BASELINE, events.RemeasurementStarted(8), NoiseMeasured(0.01), NO_BASELINE)
    with Progress("{task.description}", console=console, disable=True) as bar:
        live = progress.LiveProgress(console, bar)
        plain = PlainProgress()
        for event in observed:
            live(event)
            plain(event)
    kept = [line.split(":")[0] for line in screen.getvalue().splitlines()]
    assert kept == ["run 3", "baseline"]
    assert "no BLAS" in screen.getvalue()
    assert "initial configurations" not in screen.getvalue()
    logged = [line.split(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert logged == ["run 3", "baseline", "final re-measurement", "noise floor", "baseline"]


TIMED_BASELINE = events.BaselineMeasured(BASELINE)
NO_BASELINE = events.BaselineFailed("no BLAS")
INITIAL = replace(STARTED, settings=settings(first=(InitialConfiguration(RECORD.candidate, WARM_START),)))


@pytest.mark.parametrize(
    ("observed", "said"),
    [
        ((STARTED,), "compiling candidates"),
        ((INITIAL,), "compiling the initial configurations"),
        ((replace(INITIAL, proposed_before=5),), "going on after 5 trials"),
        ((INITIAL, events.BaselineStarted()), "timing the baseline"),
        ((INITIAL, events.BaselineStarted(), TIMED_BASELINE), "compiling the initial configurations"),
        ((INITIAL, events.BaselineStarted(), NO_BASELINE), "compiling the initial configurations"),
        ((STARTED, DONE, events.SpaceExhausted(9, False)), "selecting the result"),
        ((STARTED, DONE, events.RooflineStarted()), "measuring what this machine can do"),
        ((STARTED, DONE, events.RemeasurementStarted(8)), "timing the best again"),
        ((STARTED, events.RemeasurementStarted(8), TIMED_BASELINE), "selecting the result"),
        ((STARTED, events.RemeasurementStarted(8), NO_BASELINE), "selecting the result"),
        ((STARTED, events.SpaceExhausted(9, False), events.BaselineStarted()), "timing the baseline"),
        ((STARTED, events.RemeasurementStarted(8), NoiseMeasured(0.01)), "selecting the result"),
        ((STARTED, events.RemeasurementStarted(8), INITIAL), "compiling the initial configurations"),
    ],
)
def test_the_moving_line_says_what_the_run_does_now(observed: tuple[Event, ...], said: str) -> None:
    assert phases(*observed)[-1] == said


# Files that commands write, whatever is at the place; several of them in one folder.


def test_a_file_is_written_whole_through_a_link_and_to_a_device(tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    path.write_text("old")
    write_atomically(path, b"new")
    assert path.read_text() == "new"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert list(tmp_path.iterdir()) == [path]
    link = tmp_path / "link"
    link.symlink_to(path)
    write_atomically(link, b"newer")
    assert link.is_symlink()
    assert path.read_text() == "newer"
    write_atomically(Path("/dev/null"), b"new")
    assert not Path("/dev/null").is_file()


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none" / "best.mlir", "No such file or directory"),
        (Path("/proc/best.mlir"), ""),
        (Path("/dev/full"), "No space left on device"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(UsageError, match=f"{path}: cannot be written.*{reason}"):
            write_atomically(path, b"new")
        assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_made_and_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "library"
    paths = write_folder(folder, {"a.mlir": b"a", "x86_64/f32.yaml": b"b"})
    assert [path.read_bytes() for path in paths] == [b"a", b"b"]
    assert write_folder(folder, {"a.mlir": b"c"}) == (folder / "a.mlir",)
    assert (folder / "a.mlir").read_bytes() == b"c"
    assert sorted(path.name for path in folder.iterdir()) == ["a.mlir", "x86_64"]


def test_a_folder_that_cannot_be_written_is_one_line_and_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text("old")
    for folder, texts, message in (
        (path, {"a.mlir": b"a"}, r"a.mlir: is a file, not a folder to write into"),
        (tmp_path, {"a.mlir": b"new", "a.mlir/b.yaml": b"b"}, "cannot be written: "),
        (Path("/proc/none/library"), {"a.mlir": b"a"}, "/proc/none/library: cannot be written: "),
    ):
        with pytest.raises(UsageError, match=message):
            write_folder(folder, texts)
        assert [each.name for each in tmp_path.iterdir()] == ["a.mlir"]
        assert path.read_text() == "old"
