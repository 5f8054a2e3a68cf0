"""The facts about one trial as lines: what was tried and how it ended, GPU resources, predicted cycles."""

from typing import TYPE_CHECKING

from tuner.core.compiled_code import Resources
from tuner.core.errors import Failure
from tuner.core.records import Measurement
from tuner.core.serialization import count_text, interval_text, seconds_text, utc_text
from tuner.core.trials import StoredTrial, require_unaltered
from tuner.results.output.formatting import early_stopped_text, gflop_per_s, knobs_line, speed_text
from tuner.results.output.run_result import gpu_lines

if TYPE_CHECKING:
    from tuner.core.compiled_code import PredictedCycles


BUSIEST_SHOWN = 3  # limiting parts of a GPU, by predicted cycles


def trial_lines(trial: StoredTrial) -> list[str]:
    """Returns the main facts about one trial, as lines for ``tuner show ID``.

    Raises UsageError if the stored script was altered.
    """
    require_unaltered(trial)
    record = trial.record
    source = trial.record.reused_from
    reused = "" if source is None else f", reused from trial {source}: same script or same code"
    lines = [
        f"trial     {trial.id} of run {trial.run}, {utc_text(trial.created)}",
        f"problem   {record.problem.key}",
        f"target    {record.target}, {count_text(trial.threads, 'thread')} on {trial.machine.name}",
        f"strategy  {record.candidate.strategy}",
        knobs_line(record.candidate.choices),
        f"status    {record.status}{reused}",
    ]
    if trial.stale:
        lines.append(f"stale     {trial.stale}")
    lines += _outcome_lines(trial)
    lines += resources_lines(record.resources)
    stages = ", ".join(f"{name} {seconds_text(stage_s)}" for name, stage_s in record.stage_s)
    if stages:
        lines.append(f"stages    {stages}")
    lines.append(f"script    sha256 {record.script_sha256 or '-'}")
    lines.append(f"code      sha256 {record.artifact_sha256 or '-'}")
    return lines


def resources_lines(resources: tuple[Resources, ...]) -> list[str]:
    """Returns lines per GPU kernel: registers, spills, shared memory, occupancy, notes of ptxas."""
    lines = []
    for resource in resources:
        shared = f"{resource.dynamic_shared_bytes} + {resource.static_shared_bytes} shared bytes"
        spills = f"{resource.spill_store_bytes} + {resource.spill_load_bytes} bytes spilled"
        lines.append(
            f"kernel    {resource.kernel}: {resource.registers} registers, {spills}, "
            f"{shared} (dynamic + static), "
            f"occupancy {resource.occupancy:.0%}: {count_text(resource.blocks_per_multiprocessor, 'block')}"
        )
        lines += [f"ptxas     {note}" for note in resource.notes]
    return lines


def predicted_lines(predicted: "PredictedCycles") -> list[str]:
    """Returns lines on the cycles predicted from GPU machine code, and on the busiest units of the GPU.

    The cycles only rank trials: they are not times. Where the TMA copies tiles, a line says how many bytes of
    them a multiprocessor may have in flight.
    """
    lines = [f"predicted {predicted.cycles:,.0f} cycles by a count of its machine code: an order, no time"]
    if predicted.parts is not None:
        busy = sorted(vars(predicted.parts).items(), key=lambda part: -part[1])
        shown = ", ".join(f"{name.replace('_', ' ')} {cycles:,.0f}" for name, cycles in busy[:BUSIEST_SHOWN])
        lines.append(f"busiest   {shown} (cycles of a multiprocessor and its blocks)")
    if predicted.in_flight_bytes:
        lines.append(f"in flight {predicted.in_flight_bytes:,} bytes of tiles per multiprocessor at most")
    return lines


def _outcome_lines(trial: StoredTrial) -> list[str]:
    record = trial.record
    outcome = record.outcome
    verdict = record.correct_verdict
    lines = []
    if isinstance(outcome, Failure):
        lines.append(f"failure   stage {outcome.stage.value}: {outcome.reason}")
    if verdict is not None:
        error = f", largest error {verdict.max_error:.3g} of the tolerance" if verdict.elements else ""
        lines.append(f"verified  {verdict.elements} elements{error}")
        lines += [f"note      {note}" for note in verdict.notes]
    if isinstance(outcome, Measurement):
        lines.append(f"time      {_measurement_text(outcome)}")
        lines += gpu_lines(outcome)
    if trial.final is not None:
        lines.append(f"final     {_measurement_text(trial.final)}, interleaved")
        lines += gpu_lines(trial.final)
    if trial.best_s is not None:
        lines.append(f"reliable  {trial.reliability.answer}")
    if trial.best_s is not None and trial.early_stopped is None:
        lines.append(f"speed     {speed_text(gflop_per_s(record.problem, trial.best_s))}")
    return lines


def _measurement_text(measurement: Measurement) -> str:
    calls = count_text(measurement.inner_calls, "call")
    if not measurement.is_complete:
        return f"{early_stopped_text(measurement)} of {calls}"
    phrase = f"{seconds_text(measurement.median_s)} (95 % interval {interval_text(measurement.interval_s)}; "
    return phrase + f"{len(measurement.samples_s)} samples of {calls})"
