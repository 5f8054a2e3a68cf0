"""``tuner tune payload.mlir``: tunes a program, resumes its tuning, and runs the whole program.

``tune`` begins a tuning, ``resume`` continues a campaign, ``print_program`` prints the result.
"""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.analysis.ratios import NotComparable
from tuner.analysis.selected_result import timed
from tuner.cli.forms import COLD_START, ResultOptions
from tuner.cli.main import BEGAN_S, DONE, screen_columns
from tuner.cli.options import SUFFIX, is_model, open_store, print_found, print_json_list
from tuner.cli.session import ended_by_signals, exit_code, print_interrupted, print_stored
from tuner.cli.tune_forms import ProgramForm
from tuner.core.candidate import TargetName
from tuner.core.dynamic_sizes import SizeRange, numbers_of
from tuner.core.errors import Refusal, TunerError, UsageError
from tuner.core.problem import WEIGHTS_COLD
from tuner.core.programs import ALL, BASELINE_SETS, ProgramBaseline, ProgramSource
from tuner.core.records import Measurement, MedianInterval
from tuner.core.serialization import count_text, parse_seconds, seconds_text
from tuner.models.commands.payload_text import model_reader, read_payload_text
from tuner.models.commands.ran import call_text, report_lines
from tuner.models.documents import program_document
from tuner.models.dynamic.specialization import takes_dynamic_size
from tuner.models.dynamic.tuned_sizes import TIMEOUT_S, SharedLimits, request_at
from tuner.models.fusion_tuning import FusionTuning, child_fusion_steps
from tuner.models.lowering.model_contractions import model_contractions
from tuner.models.request import ProgramOptions, ProgramRequest, program_support, require_on_cpu
from tuner.models.service import in_child
from tuner.models.tuning import ProgramTuning, child_process_steps
from tuner.results.database_name import database_text, which_database
from tuner.results.output.campaign_progress import campaign_progress
from tuner.results.output.campaign_tables import campaign_lines
from tuner.results.output.formatting import knobs_text, wrapped
from tuner.results.output.program_tables import baseline_lines, fusion_lines, gain_line
from tuner.results.output.progress import progress
from tuner.results.output.run_result import why_lines
from tuner.targets.backends import require_runs_here, resolve_target
from tuner.tuning.events import Interruption
from tuner.tuning.request import run_settings

if TYPE_CHECKING:
    from tuner.core.problem import NamedProblem, Problem
    from tuner.core.requests import RunRequest
    from tuner.core.runs import RunSettings
    from tuner.db.store import Store
    from tuner.models.fusion_tuning import FusionSteps
    from tuner.models.tunable_fusions import TunableFusions
    from tuner.models.tuning import TunedProblem, TunedProgram
    from tuner.targets.backends import Backends
    from tuner.tuning.tuned_run import TunedCampaign


OF_MATMULS = ("strategies", "space")  # options that choose how matmuls of a program are tuned


def tune(form: ProgramForm, backends: "Backends") -> int:
    """Tunes the fusions, or the matmuls, of a program; runs it, prints the result, returns the exit code.

    Raises UsageError for options that cannot be combined, and for a program that has nothing to tune.
    """
    resolved = resolve_target(form.run.target_text, backends, form.run.chip)
    request_options = ProgramOptions(seed=form.run.seed, threads=form.run.threads, math=form.math)
    request_options.require_suiting(resolved, backends)
    require_runs_here(resolved, backends, f"tuner tune {shlex.quote(form.operation)}")
    sizes = _sizes(form, resolved)
    request = _request(form.operation, resolved, request_options, form.entry, form.arguments)
    if sizes is not None:
        return _tune_sizes(form, backends, request, sizes)
    tuned = _tuned_fusions(form, backends, request)
    if tuned is None:
        tuned = _tuned_matmuls(form, backends, request)
    return print_program(tuned, form.result)


def _sizes(form: ProgramForm, target: TargetName) -> SizeRange | None:
    """Returns the range of ``--sizes``, None without it. Raises UsageError where it cannot be combined."""
    if form.sizes is None:
        return None
    sizes = SizeRange.parse(form.sizes)
    require_on_cpu(target, sizes)
    if sizes.is_of_two:
        raise UsageError("--sizes: found n and m, allowed n when tuning", "--sizes 1..4096")
    for name in ("baseline", *OF_MATMULS):
        if typed := form.flag(name):
            raise UsageError(f"{typed} cannot be combined with --sizes: the fusions of a program are tuned")
    if is_model(form.operation):
        raise UsageError(f"--sizes cannot be combined with {form.operation}: a model has its example's sizes")
    return sizes


def _tune_sizes(form: ProgramForm, backends: "Backends", request: ProgramRequest, sizes: SizeRange) -> int:
    """Tunes the static programs of some sizes of a range, prints each result, returns the exit code.

    The first code that is not DONE is returned.
    """
    codes = []
    documents = []
    for size, tuned in _tuned_sizes(form, backends, request, sizes):
        codes.append(exit_code(tuned))
        if form.result.as_json:
            documents.append({"n": size, **program_document(tuned)})
            continue
        print(f"size    n = {size}, of {sizes.text}")
        print_program(tuned, form.result)
    if form.result.as_json:
        print_json_list(documents)
    return next((code for code in codes if code != DONE), DONE)


def _tuned_sizes(
    form: ProgramForm, backends: "Backends", request: ProgramRequest, sizes: SizeRange
) -> "Iterator[tuple[int, TunedProgram]]":
    """Yields each tuned size with its program, up to the first interruption."""
    began_s = click.get_current_context().meta[BEGAN_S]
    budget_s = None
    if form.run.budget is not None:
        budget_s = parse_seconds(form.run.budget)
    limits = SharedLimits(form.run.trials, budget_s)
    chosen = sizes.tuned_sizes
    spent = 0
    for index, sizes_of_program in enumerate(chosen):
        (size,) = numbers_of(sizes_of_program)  # two are refused
        share = limits.share(len(chosen) - index, spent, began_s, time.monotonic())
        if share.is_over:
            untuned = ", ".join(map(str, chosen[index:]))
            print(f"note: n = {untuned}: not tuned: the budget has ended", file=sys.stderr)
            return
        shared = replace(form, run=replace(form.run, trials=share.trials, budget=share.budget))
        static = request_at(request, size, sizes.least, form.operation)
        tuned = _tuned_fusions(shared, backends, static, size)
        if tuned is None:
            raise UsageError(f"{form.operation}: n = {size}: has no fusion that can be tuned")
        yield size, tuned
        if tuned.is_interrupted:
            return
        if tuned.campaign is not None:
            spent += tuned.campaign.trials


def _tuned_matmuls(form: ProgramForm, backends: "Backends", request: ProgramRequest) -> "TunedProgram":
    _require_cache_of_program(form)
    run = form.run
    if request.model and run.baseline in BASELINE_SETS:
        run = replace(run, baseline="")  # nothing is timed next to a model without fusions
    if run.threads > 1:
        limit = "allowed 1: a program without fusions runs on one thread"
        raise UsageError(f"threads: found {run.threads}, {limit}")
    interruption = Interruption()
    steps = child_process_steps()
    steps = replace(steps, problems=partial(_hinted_problems, steps.problems, Path(form.operation)))

    def settings_of(problem: "Problem") -> "RunSettings":
        return run_settings(run.request(problem, form.warm), backends)

    database = form.result.database
    with open_store(database) as store, ended_by_signals(interruption), progress() as observe:
        tuning = ProgramTuning(backends, steps, store, interruption, observe)
        try:
            return tuning.tune(request, settings_of, form.operation)
        except UsageError as error:
            typed = " ".join(filter(None, map(form.flag, OF_MATMULS)))
            if error.hint or not typed:
                raise
            hint = f"with {typed} matmuls are tuned one by one; without, the program's fusions are"
            raise UsageError(error.message, hint) from error


def _require_cache_of_program(form: ProgramForm) -> None:
    if form.flag("cache"):
        raise form.of_types(form.flag("cache"))


def _request(
    payload: str, target: TargetName, options: ProgramOptions, entry: str | None, arguments: tuple[str, ...]
) -> ProgramRequest:
    program = read_payload_text(Path(payload))
    return ProgramRequest(
        text=program.text,
        written=program.written,
        target=target,
        entry=entry,
        options=options,
        arguments=arguments,
        is_compared=True,
        model=payload if is_model(payload) else "",
    )


def _tuned_fusions(
    form: ProgramForm, backends: "Backends", request: ProgramRequest, size: int = 0
) -> "TunedProgram | None":
    # size: n of the static program of a payload with a dynamic size n; 0: of a payload of static sizes
    #
    # None, so that matmuls are tuned one by one: the target has a device; strategies, a search space or a
    # baseline library were named; or the program has no fusion that can be tuned
    if program_support(request.target, backends).has_device:
        return None
    # --baseline names what a model is timed next to (all, eager, ...), or a library for its matmuls
    names_library = bool(form.run.baseline) and not (request.model and form.run.baseline in BASELINE_SETS)
    if names_library or any(getattr(form.run, name) for name in OF_MATMULS):
        return None
    baselines = BASELINE_SETS.get(form.run.baseline or ALL, ()) if request.model else ()
    request = replace(request, baselines=baselines)
    cache = form.cache if form.flag("cache") else WEIGHTS_COLD
    database = form.result.database
    interruption = Interruption()
    with open_store(database) as store, ended_by_signals(interruption), campaign_progress() as observe:
        tuning = FusionTuning(
            backends, program_steps(), store, which_database(database), interruption, observe
        )
        fusions = tuning.find(request, form.operation, cache)
        if not fusions.problems:
            _require_cache_of_program(form)
            _note_untuned(fusions)
            return None
        warm = form.warm_flag
        if warm:  # fusions of a program are each other's warm start
            raise UsageError(f"{warm} cannot be combined with a program, whose fusions share one budget")
        payload = str(Path(form.operation).absolute())
        source = ProgramSource(
            payload, form.entry, form.arguments, cache, baselines, request.options.threads, size
        )

        def request_of(problem: "Problem", threads: int) -> "RunRequest":
            run = replace(form.run, threads=threads, baseline="")  # of each fusion: one, or as the program
            return run.request(problem, COLD_START)

        name = Path(form.operation).name
        began_s = click.get_current_context().meta[BEGAN_S]
        if size:  # its share of the budget begins now
            return tuning.tune(request, fusions, request_of, f"{name} n={size}", source)
        return tuning.tune(request, fusions, request_of, name, source, began_s)


def _note_untuned(fusions: "TunableFusions") -> None:
    if fusions.why_none:
        print(f"note: not tuned as fusions: {fusions.why_none}", file=sys.stderr)
    for line in fusions.left_out:
        print(f"note: not tuned: {line}", file=sys.stderr)


def program_steps() -> "FusionSteps":
    """Returns the steps of tuning a program's fusions, with the timing of a PyTorch model's baselines."""
    return replace(child_fusion_steps(), baselines=_model_baselines)


def _model_baselines(request: ProgramRequest) -> tuple[ProgramBaseline, ...]:
    return model_reader().baselines(request)


def _hinted_problems(
    find: "Callable[[str, str | None], tuple[Problem, ...]]", file: Path, text: str, entry: str | None
) -> "tuple[Problem, ...]":
    # An error about text of which no program can be made, and one about a program without a matmul, gets a
    # hint where the contractions of the file can be tuned all the same. A wrong ``entry`` gets none.
    hint = f"tuner tune --shapes {shlex.quote(str(file))}"
    try:
        problems = find(text, entry)
    except TunerError as error:
        is_of_text = type(error) is TunerError or (type(error) is UsageError and entry is None)
        if error.hint or not is_of_text or not _has_contractions(file):
            raise
        raise type(error)(error.message, hint) from error
    if not problems and in_child(takes_dynamic_size, text, entry, timeout_s=TIMEOUT_S):
        hint = f"tuner tune {shlex.quote(str(file))} --sizes 1..4096"
        raise UsageError("no matmul of static sizes and known types", hint)
    if not problems and _has_contractions(file):
        raise UsageError("no matmul of static sizes and known types", hint)
    return problems


def _has_contractions(file: Path) -> bool:
    if file.suffix != SUFFIX:
        return False
    try:
        return bool(model_contractions(file)[0])
    except TunerError:
        return False


def program_lines(tuned: "TunedProgram", database_text: str = "") -> list[str]:
    """Returns the result of a tuned program as lines for people: matmuls or fusions, run, speedup."""
    if tuned.campaign is None:
        of_problems = (_problem_lines(problem, database_text) for problem in tuned.problems)
        lines = list(chain.from_iterable(of_problems))
    else:
        lines = campaign_lines(tuned.campaign, screen_columns(), database_text)
        lines += _untried_lines(tuned)
        lines += fusion_lines(tuned.fusions, screen_columns(), tuned.left_out)
    if tuned.report is not None:
        lines += report_lines(tuned.target, tuned.report)
    if tuned.failure:
        lines.append(f"failed  {tuned.failure}")
    if tuned.not_run:
        lines.append(f"not run {tuned.not_run}")
    gain = tuned.gain
    if tuned.plain is not None and tuned.plain.times is not None:
        without = "scripts" if tuned.campaign is None else "tuning"
        call = f"{call_text(tuned.plain.times)}; {tuned.plain.times.reliability.text}"
        lines.append(f"plain   {call}: the same without {without}")
    if isinstance(gain, NotComparable):
        lines.append(gain_line(None, gain.reason))
    elif gain is not None and tuned.campaign is None:
        lines.append(f"gain    {gain.faster_text}")
    elif gain is not None:
        lines.append(gain_line(MedianInterval(gain.speed, *gain.speed_interval)))
    return lines + baseline_lines(tuned.baselines, screen_columns())


def _untried_lines(tuned: "TunedProgram") -> list[str]:
    """Returns a line that names the fusions for which the budget had no trial; [] where each had one."""
    assert tuned.campaign is not None
    runs = [run for run in tuned.campaign.runs if run.counts.proposed == 0]
    if not runs or tuned.is_interrupted:
        return []
    names = ", ".join(run.run.campaign.name for run in runs if run.run.campaign is not None)
    counted = f"{len(runs)} of {count_text(len(tuned.campaign.runs), 'fusion')}"
    return [f"untried   {counted} had no trial, and keep their initial configurations: {names}"]


def _problem_lines(problem: "TunedProblem", database_text: str) -> list[str]:
    lines = [f"matmul  {problem.problem.key}"]
    trial = problem.trial
    if trial is None:
        lines.append(f"        stays as loops, or by default: {problem.reason}")
        if problem.tuned is not None:
            lines += [f"        {command}" for command in why_lines(problem.tuned, database_text)[1:]]
        return lines
    record = trial.record
    is_timed = trial.final is not None or isinstance(record.outcome, Measurement)
    time = seconds_text(timed(trial).median_s) if is_timed else "verified, no time"
    script = f"{record.candidate.strategy} {knobs_text(record.candidate.choices)}"
    trust = f" ({trial.reliability.word})" if is_timed else ""
    return [*lines, f"        trial {trial.id}: {time}{trust}, {script}"]


def print_program(tuned: "TunedProgram", result: ResultOptions) -> int:
    """Prints the result of a tuned program; returns the exit code."""
    database = result.database
    lines = program_lines(tuned, database_text(database))
    print_found(result.as_json, program_document(tuned), *wrapped(lines, screen_columns()))
    print_stored(database)
    if tuned.is_interrupted and tuned.campaign is not None:
        campaign = tuned.campaign.campaign.id
        print_interrupted(f"tuner tune --resume campaign:{campaign}{database_text(database)}")
    elif tuned.is_interrupted:
        runs = [
            problem.tuned.run.id
            for problem in tuned.problems
            if problem.tuned and problem.tuned.is_interrupted
        ]
        print(f"interrupted; everything measured is stored: run {runs[0]}", file=sys.stderr)
    return exit_code(tuned)


def contractions(file: Path) -> "tuple[tuple[NamedProblem, ...], tuple[str, ...]]":
    """Returns the contractions in an MLIR file as problems, and a line for each that cannot be a problem.

    A child process parses the file. Raises UsageError if it is unreadable, not MLIR or without a problem.
    """
    return model_contractions(file)


def resume(
    tuned: "TunedCampaign",
    source: "ProgramSource",
    backends: "Backends",
    store: "Store",
    result: ResultOptions,
) -> int | Refusal:
    """Compiles, compares, times and prints the program of a resumed campaign.

    Returns the exit code, or why the program cannot be compiled as it was.
    """
    program = resumed_program(tuned, source, backends, store, result.database)
    if isinstance(program, Refusal):
        return program
    return print_program(program, result)


def resumed_program(
    tuned: "TunedCampaign",
    source: "ProgramSource",
    backends: "Backends",
    store: "Store",
    database: str | None,
) -> "TunedProgram | Refusal":
    """Compiles, compares and times the program of a resumed campaign.

    Returns a Refusal, with the reason, if the program cannot be read or has other fusions than were tuned.
    """
    began_s = time.monotonic()
    with campaign_progress() as observe:
        tuning = FusionTuning(
            backends, program_steps(), store, which_database(database), Interruption(), observe
        )
        try:
            request, fusions = _read(tuned, source, tuning)
        except TunerError as error:
            return Refusal(error.message, error.hint)
        resumed = tuning.run_and_time(request, fusions, tuned, began_s)
    return replace(resumed, seconds=tuned.campaign.seconds + resumed.seconds)


def _read(
    tuned: "TunedCampaign", source: "ProgramSource", tuning: "FusionTuning"
) -> "tuple[ProgramRequest, TunableFusions]":
    options = ProgramOptions(seed=tuned.campaign.settings.seed, threads=source.threads)
    target = tuned.campaign.runs[0].settings.target
    request = _request(source.payload, target, options, source.entry, source.arguments)
    if source.size:
        request = request_at(request, source.size, source.size, source.payload)
    request = replace(request, baselines=source.baselines)
    fusions = tuning.find(request, source.payload, source.cache)
    if {named.problem for named in fusions.problems} != set(tuned.problems):  # the heaviest are first
        raise UsageError(f"{source.payload}: has other fusions than those that were tuned")
    return request, fusions
