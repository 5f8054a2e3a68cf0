"""The result of a run as lines for people, with the conditions of times that a GPU measured.

``tune_lines`` is what ``tuner tune`` ends with, ``result_lines`` has more facts; other functions give the
lines of one subject, [] where there is nothing to print.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tuner.analysis.ratios import (
    Comparable,
    NotComparable,
    against_baseline,
    between_trials,
    sensitivity_text,
)
from tuner.analysis.selected_result import SelectedResult, timed
from tuner.core.problem import WEIGHTS_COLD
from tuner.core.queries import Counts
from tuner.core.records import GpuState, Measurement
from tuner.core.roofline import SHIPPED, Roofline
from tuner.core.round_quality import noise_text
from tuner.core.runs import JUDGED, Run
from tuner.core.serialization import count_text, interval_text, seconds_text
from tuner.core.trials import StoredTrial
from tuner.results.output.formatting import gflop_per_s, knobs_line, one_line, speed_text
from tuner.space.scripts.header import custom_ops

if TYPE_CHECKING:
    from tuner.core.remote_results import PendingTrial
    from tuner.results.best_trials import BestStock
    from tuner.tuning.tuned_run import TunedRun

TIED_SHOWN = 8  # trials
REASONS_SHOWN = 3  # kinds of failure
FEW_ROWS = 16  # of A: reading the weights takes most of the time of such a quantized matmul
USUAL_SOURCES = ("measured", "measured by FMA", SHIPPED)  # of a roofline's flop/s, that need no mention
MEASURED_BY = "measured by "  # begins others of these sources


def gpu_lines(measurement: Measurement) -> list[str]:
    """Returns lines on a GPU's measurement: cold-cache time, sensors, clocks, throttling; [] for a CPU."""
    lines = []
    if measurement.cold_median_s is not None:
        lines.append(f"cold      {seconds_text(measurement.cold_median_s)} with the cache flushed before")
    conditions = measurement.conditions
    if conditions is not None:
        lines.append(f"sensors   {_state_text(conditions.before)}; after: {_state_text(conditions.after)}")
        span = conditions.between
        if span is not None and span.lowest_sm_clock_hz is not None and span.highest_sm_clock_hz is not None:
            clocks = f"{span.lowest_sm_clock_hz / 1e6:.0f} to {span.highest_sm_clock_hz / 1e6:.0f} MHz"
            lines.append(f"clocks    SM {clocks} in {span.readings} readings between the rounds")
    return lines + slowdown_lines(measurement)


def slowdown_lines(measurement: Measurement) -> list[str]:
    """Returns a line on why the GPU throttled its clocks during a measurement; [] if it did not."""
    slowdowns = () if measurement.conditions is None else measurement.conditions.slowdowns
    text = "throttled by {}: the GPU can be faster than this time"
    if slowdowns:
        return [text.format(", ".join(slowdowns))]
    return []


def _state_text(state: GpuState) -> str:
    readings = (
        ("SM", state.sm_clock_hz, 1e6, "MHz"),
        ("memory", state.memory_clock_hz, 1e6, "MHz"),
        ("", state.temperature_c, 1.0, "C"),
        ("", state.power_w, 1.0, "W"),
    )
    texts = (
        f"{name} {value / scale:.0f} {unit}".strip()
        for name, value, scale, unit in readings
        if value is not None
    )
    return ", ".join(texts) or "nothing reported"


def tune_lines(tuned: "TunedRun", selected: SelectedResult, database_text: str = "") -> list[str]:
    """Returns the lines that end ``tuner tune``: best trial, time, ratio to the baseline, next command.

    If the time is unreliable, a line says why. ``result_lines`` returns more facts. ``database_text``: the
    option --db for printed commands, or "".
    """
    run = tuned.run
    best = selected.best
    measurement = selected.measurement
    interval = f"(95 % interval {interval_text(measurement.interval_s)})"
    speed = speed_text(gflop_per_s(best.record.problem, measurement.median_s))
    counts = f"{count_text(tuned.counts.proposed, 'trial')} in {tuned.seconds:.0f} s"
    if tuned.counts.failed:
        counts += f", {tuned.counts.failed} failed"
    return [
        f"best      trial {best.id} of run {run.id}: {best.record.candidate.strategy}",
        f"time      {seconds_text(measurement.median_s)} {interval}, {speed}, {best.reliability.word}",
        *ratio_lines(run, best),
        f"next      {_next_command(best)}{database_text}",
        *slowdown_lines(measurement),
        *unreliable_lines(run, best, database_text),
        f"more      {counts}: tuner show run:{run.id}{database_text}",
    ]


def ratio_lines(run: Run, best: StoredTrial) -> list[str]:
    """Returns the line of ``tuner tune`` on the best trial's speed relative to the baseline's.

    [] without a baseline. In ``tuner show``, ``baseline_text`` says it.
    """
    compared = against_baseline(run, best)
    if run.baseline is None or compared is None:
        return []
    baseline = f"{run.baseline.name} ({seconds_text(run.baseline.measurement.median_s)})"
    if isinstance(compared, Comparable):
        low, high = compared.speed_interval
        interval = f"{compared.level} % interval {low:.2f} .. {high:.2f}"
        return [f"ratio     {compared.speed:.2f} times as fast as {baseline}, {interval}"]
    if not best.reliability.is_reliable:  # the line on reliability says why
        return [f"ratio     none to {baseline}, as the time is unreliable"]
    return [f"ratio     none to {baseline}: {compared.reason}"]


def _next_command(best: StoredTrial) -> str:
    if best.script:
        return f"tuner export --trial {best.id} -o best.mlir"
    return f"tuner show {best.id}"  # trials of a replayed recording have no script


def result_lines(tuned: "TunedRun", selected: SelectedResult, database_text: str = "") -> list[str]:
    """Returns the result of a tuned run as lines: best trial, reliability of its time, next command.

    ``database_text``: the option --db for printed commands, or "".
    """
    run = tuned.run
    record = selected.best.record
    measurement = selected.measurement
    interval = f"(95 % interval {interval_text(measurement.interval_s)}{noise_text(run.noise)})"
    speed = speed_text(gflop_per_s(record.problem, measurement.median_s))
    lines = [
        f"best      trial {selected.best.id} of run {run.id}: {record.candidate.strategy}",
        knobs_line(record.candidate.choices),
        f"time      {seconds_text(measurement.median_s)} {interval}",
        f"speed     {speed}{baseline_text(run, selected.best)}",
    ]
    lines += libraries_lines(run)
    lines += gpu_lines(measurement)
    sensitive = sensitivity_text(measurement, record.problem, run.noise, selected.best.reliability)
    if sensitive:
        lines.append(f"operands  sensitive to alignment: {sensitive}")
    if run.roofline is not None:
        lines.append(f"roofline  {roofline_text(run, run.roofline, selected.best)}")
    lines += unreliable_lines(run, selected.best, database_text) + tied_lines(selected, run, database_text)
    lines += portable_lines(run, selected.best, database_text)
    lines.append(f"trials    {counts_text(tuned.counts)} in {tuned.seconds:.0f} s{idle_text(run)}")
    return [*lines, f"next      {_next_command(selected.best)}{database_text}"]


def other_cache_lines(others: Sequence[StoredTrial]) -> list[str]:
    """Returns a line per trial of ``others`` (by ``other_winners``), the best ones for other cache states."""
    return [
        f"caches    {other.record.problem.cache}: trial {other.id} is the best, {other.record.candidate.text}"
        for other in others
    ]


def tied_lines(selected: SelectedResult, run: Run, database_text: str = "") -> list[str]:
    """Returns lines on the other trials tied with the fastest, with their times relative to the best trial's.

    At most TIED_SHOWN (8) trials; [] without other tied trials. If the timing was unreliable or noisy, a line
    says that it cannot separate the trials. If it was noisy, a further line says how to time again;
    ``unreliable_lines`` says so if it was unreliable. ``database_text``: the option --db for printed
    commands, or "".
    """
    others = [trial for trial in selected.tied if trial is not selected.best]
    if not others:
        return []
    text = []
    for trial in others[:TIED_SHOWN]:
        compared = between_trials(run, trial, selected.best)
        longer = f" ({compared.longer_percent_text})" if isinstance(compared, Comparable) else ""
        text.append(f"{trial.id}{longer}")
    more = f" and {len(others) - TIED_SHOWN} more" if len(others) > TIED_SHOWN else ""
    is_unreliable = not selected.best.reliability.is_reliable
    noun = "trial" if len(others) == 1 else "trials"
    if is_unreliable or not selected.can_separate:
        return [
            f"unclear   this round of timing cannot separate it from {noun} {', '.join(text)}{more}",
            # ``unreliable_lines`` has the command already
            *([] if is_unreliable else [_again_line(run, database_text)]),
        ]
    why = "not shown to differ by more than noise; the simplest script is taken"
    return [f"tied      with {noun} {', '.join(text)}{more}: {why}"]


def best_text(best: StoredTrial, run: Run) -> str:
    """Returns a text on a run's best trial: its id, its time and how reliable the time is."""
    measurement = timed(best)
    time = f"{seconds_text(measurement.median_s)} (95 % interval {interval_text(measurement.interval_s)})"
    return f"the best is trial {best.id} of run {run.id}: {time}; {best.reliability.text}"


def portable_lines(run: Run, best: StoredTrial, database_text: str = "") -> list[str]:
    """Returns lines that say whether the best script calls ops of tuner and, if so, how to export another.

    [] for a replay, which has no script. ``database_text``: the option --db for printed commands, or "".
    """
    if not best.script:  # a replay has no script to export
        return []
    ops = custom_ops(best.script_text)
    name = best.record.candidate.strategy
    if not ops:
        # a user's script may call upstream's ops that only a newer mlir-opt than the tested one has
        is_users = any(
            strategy.name == name and strategy.path is not None for strategy in run.settings.strategies
        )
        says = "its script calls no op of tuner" if is_users else "stock mlir-opt runs its script"
        return [f"portable  yes: {says}"]
    lines = [f"portable  no: its script calls {', '.join(ops)}; one without, if any:"]
    return [*lines, f"          tuner export --trial {best.id} --stock -o stock.mlir{database_text}"]


def stock_text(stock: "BestStock") -> str:
    """Returns text on the best trial that stock mlir-opt runs, and its slowdown against the best trial."""
    if stock.trial.id == stock.winner.id:
        return f"trial {stock.trial.id}: stock mlir-opt runs its script as it is"
    who = f"trial {stock.trial.id}, the best that stock mlir-opt runs"
    if isinstance(stock.compared, NotComparable):
        verb = "is as fast as" if stock.compared.is_equal else "cannot be compared with"
        return f"{who}, {verb} trial {stock.winner.id}: {stock.compared.reason}"
    return f"{who}, takes {stock.compared.longer_text} against trial {stock.winner.id}"


def unreliable_lines(run: Run, best: StoredTrial, database_text: str = "") -> list[str]:
    """Returns lines that say why the best trial's time is not reliable and which command times again.

    [] if it is reliable. There is no command for an interrupted run, which is resumed instead, and for
    scripts of ``tuner judge``. ``database_text``: the option --db for printed commands, or "".
    """
    if best.reliability.is_reliable:
        return []
    reliable = f"reliable  {best.reliability.answer}"
    if run.status == "interrupted" or run.settings.sampler == JUDGED:
        return [reliable]
    return [reliable, _again_line(run, database_text)]


def _again_line(run: Run, database_text: str) -> str:
    return f"          on a quiet machine: tuner tune --resume {run.id} --retime{database_text}"


def verified_lines(
    tuned: "TunedRun", promising: "Sequence[PendingTrial]", database_text: str = "", facts: str = ""
) -> list[str]:
    """Returns the result of a run in which nothing was timed, as lines: verified trials, next commands.

    ``promising``: trials that a GPU should time, the most promising first; ``facts``: a text about the first.
    ``database_text``: the option --db for printed commands, or "".
    """
    run = tuned.run
    counts = tuned.counts
    if promising:
        exported = f"--trial {promising[0].id} -o verified.mlir"
    else:
        exported = "--trial ID -o verified.mlir"
    not_run_text = ": their code cannot run on this processor, nothing of them was verified"
    if run.settings.target.is_on_cpu:
        why = "code for another processor is not timed"
    else:
        why = f"target {run.settings.target} has no clock"
    return [
        f"verified  {counts.verified} of {count_text(counts.proposed, 'trial')} of run {run.id}",
        *([f"compiled  {counts.compiled} only{not_run_text}"] if counts.compiled else []),
        f"problem   {run.settings.problem.key}, for {run.machine.name}",
        f"times     none: {why}, nothing is ranked",
        *order_lines(promising, facts),
        f"trials    {counts_text(tuned.counts)} in {tuned.seconds:.0f} s{idle_text(run)}",
        f"next      tuner history --run {run.id} --status verified{database_text}",
        f"          tuner export {exported}{database_text}",
        *(
            [f"          tuner bundle export --run {run.id} -o pending.bundle{database_text}"]
            if promising
            else []
        ),
    ]


def order_lines(promising: "Sequence[PendingTrial]", facts: str = "") -> list[str]:
    """Returns a line that says which trials (8 at most) a GPU should time first; [] if there are none.

    ``promising``: the trials, most promising first; ``facts``: a text about the first, for trials without
    predicted cycles.
    """
    if not promising:
        return []
    counted = [trial for trial in promising if trial.predicted_cycles is not None]
    shown = ", ".join(str(trial.id) for trial in (counted or promising)[:TIED_SHOWN])
    if counted:
        why = "predicted cycles, which are not times"
    else:
        why = "occupancy and bytes read per flop"
    of_first = f"; {promising[0].id}: {facts}" if facts and not counted else ""
    return [f"order     trials {shown} first, by {why}{of_first}"]


def failure_lines(tuned: "TunedRun", database_text: str = "") -> list[str]:
    """Returns lines that say why no trial of a run succeeded: the three most frequent failures, commands.

    ``database_text``: the option --db for printed commands, or "".
    """
    if tuned.counts.proposed == 0:
        return ["no candidate was tried"]
    lines = [f"no candidate worked: {counts_text(tuned.counts)}"]
    for alike in tuned.failures[:REASONS_SHOWN]:
        failure = alike.failure
        lines.append(f"  {len(alike.trials)} x {failure.stage.value}: {one_line(failure.reason)}")
    commands = [f"tuner history --run {tuned.run.id} --status failed{database_text}"]
    if tuned.failures:
        commands.insert(0, _explain_command(tuned, database_text))
    return [*lines, f"  more: {commands[0]}", *(f"        {command}" for command in commands[1:])]


def why_lines(tuned: "TunedRun", database_text: str = "") -> list[str]:
    """Returns two lines on a run in which no candidate worked: the most frequent failure, and a command.

    The command shows one trial that failed so. [] if a candidate worked, or none failed. ``database_text``:
    the option --db for printed commands, or "".
    """
    if not tuned.why_not_worked:
        return []
    return [one_line(tuned.why_not_worked), _explain_command(tuned, database_text)]


def _explain_command(tuned: "TunedRun", database_text: str) -> str:
    return f"tuner explain {tuned.failures[0].trials[0]}{database_text}"


def idle_text(run: Run) -> str:
    """Returns the share of a run's search in which nothing was loaded, verified or timed; "" if unknown."""
    if run.idle_share is None:
        return ""
    return f"; measuring worker idle {run.idle_share:.0%} of the search"


def counts_text(counts: Counts) -> str:
    """Returns a run's trial counts as text: '4 trials: 3 measured, 1 failed, 2 of them reused (...)'."""
    text = f"{count_text(counts.proposed, 'trial')}: {measured_text(counts)}, {counts.failed} failed"
    ended = counts.measured + counts.verified + counts.compiled + counts.failed
    if ended < counts.proposed:  # under way in a run that goes on, else interrupted
        text += f", {counts.proposed - ended} without an outcome"
    if counts.reused:
        text += f", {counts.reused} of them reused (same code)"
    return text


def measured_text(counts: Counts) -> str:
    """Returns how many trials were measured, verified without a time, and compiled only: '3 measured'."""
    of_status = {"measured": counts.measured, "verified": counts.verified, "compiled only": counts.compiled}
    return ", ".join(f"{count} {what}" for what, count in of_status.items() if count) or "0 measured"


def roofline_text(run: Run, roofline: Roofline, best: StoredTrial) -> str:
    """Returns the roofline's limits and, if its time is reliable, the best trial's share of the roofline."""
    problem = run.settings.problem
    median_s = timed(best).median_s
    work = _work(run, median_s)
    roofline = roofline.raised(*work)
    how = SHIPPED if roofline.flop_source == SHIPPED else "measured"
    speed = f"{speed_text(roofline.flop_per_s / 1e9)}{_source_text(roofline.flop_source)}"
    limits = f"{speed} and {roofline.bytes_per_s / 1e9:.1f} GB/s, {how}"
    who = "this GPU" if run.machine.chip else count_text(run.settings.threads, "thread")
    if not best.reliability.is_reliable:
        return f"no share, as the time is unreliable; {who} can do {limits}"
    share = f"{roofline.share(*work):.1%} of what {who} can do ({limits})"
    if not _reads_memory(run) or problem.sizes[0] > FEW_ROWS:
        return share
    return f"{share}, {problem.bytes / median_s / roofline.bytes_per_s:.0%} of read bandwidth"


def _source_text(flop_source: str) -> str:
    if flop_source in USUAL_SOURCES:
        return ""
    if flop_source.startswith(MEASURED_BY):  # the bandwidth, printed next, is measured as well
        return f" by {flop_source.removeprefix(MEASURED_BY)}"
    return f", {flop_source}"


def _reads_memory(run: Run) -> bool:
    # Weights that others evict are read from memory, though a cache would hold them: copies of them
    # are multiplied in turn. The copies of small weights may all lie in the last cache.
    problem = run.settings.problem
    is_evicted = problem.cache == WEIGHTS_COLD and problem.bytes > run.machine.l2_bytes
    return bool(problem.weights) and is_evicted


class _Work(NamedTuple):
    flop: int
    moved_bytes: int
    cache_bytes: int  # of the last-level cache; 0: the operands are read from memory in any case
    time_s: float


def _work(run: Run, median_s: float) -> _Work:
    problem = run.settings.problem
    cache_bytes = 0 if _reads_memory(run) else run.machine.l3_bytes
    return _Work(problem.flop, problem.bytes, cache_bytes, median_s)


def roofline_share(run: Run, trial: StoredTrial) -> float | None:
    """Returns the share of a run's roofline that a trial reaches; None if unknown, or if it is unreliable."""
    if run.roofline is None or trial.best_s is None or not trial.reliability.is_reliable:
        return None
    work = _work(run, timed(trial).median_s)
    return run.roofline.raised(*work).share(*work)


def libraries_lines(run: Run) -> list[str]:
    """Returns a line on the timed libraries of which the fastest is the baseline.

    [] if there is no baseline, or if the user named no library and the problem has no quantized weights.
    """
    baseline = run.baseline
    problem = run.settings.problem
    if baseline is None or not (run.settings.baseline_library or problem.weights):
        return []
    times = [
        one_line(f"{library.name or library.library}: failed: {library.failure}")
        if library.median_s is None
        else f"{library.name} {seconds_text(library.median_s)}"
        for library in baseline.libraries
    ]
    # a library places the weights of a quantized matmul itself
    how = "" if problem.weights else f", operands {problem.offset_bytes} bytes past a cache line"
    threads = count_text(baseline.threads, "thread")
    return [f"libraries {'; '.join(times) or baseline.name} ({threads}{how})"]


def baseline_text(run: Run, best: StoredTrial) -> str:
    """Returns text for ``tuner show``: the best trial's speed relative to the baseline's.

    Or why there is no ratio; '' without a baseline.
    """
    compared = against_baseline(run, best)
    if run.baseline is None or compared is None:
        return ""
    baseline_s = run.baseline.measurement.median_s
    speed = speed_text(gflop_per_s(run.settings.problem, baseline_s))
    # 0 threads: the baseline ran on a GPU
    threads = f", {count_text(run.baseline.threads, 'thread')}" if run.baseline.threads else ""
    name = f"{run.baseline.name} ({seconds_text(baseline_s)}, {speed}{threads})"
    if isinstance(compared, Comparable):
        return f", {compared.percent_text} of {name}"
    if not best.reliability.is_reliable:  # the line on reliability says why
        return f", unreliable next to {name}"
    return f", no ratio to {name}: {compared.reason}"
