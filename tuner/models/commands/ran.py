"""The work and the lines of ``tuner run``: a whole MLIR function runs in a child process."""

import contextlib
import shlex
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.main import DONE, FAILED, screen_columns
from tuner.cli.options import print_found, print_json
from tuner.core.device_programs import DeviceWork
from tuner.core.dynamic_sizes import SizeRange
from tuner.core.errors import Refusal, UsageError, error_lines
from tuner.core.programs import LOOPS, TUNED
from tuner.core.serialization import count_text, interval_text, seconds_text
from tuner.models.commands.sized_lines import comparison_line, sized_lines
from tuner.models.documents import run_document, sized_run_document
from tuner.models.dynamic.checked_run import run_sizes
from tuner.models.payload_errors import in_file, named_in_errors
from tuner.models.program_times import ProgramTimes
from tuner.models.report import KernelSample, ProgramReport
from tuner.models.request import ProgramRequest, require_on_cpu
from tuner.models.service import in_child, run_in_child
from tuner.results.database import known_url
from tuner.results.database_name import database_text
from tuner.results.output.formatting import wrapped
from tuner.results.output.program_tables import fusion_lines, ops_text

if TYPE_CHECKING:
    from tuner.core.candidate import TargetName
    from tuner.core.programs import TunedKernel

RUN_TIMEOUT_S = 600.0
SLOW_S = 10.0  # after which a command says that it is still at work


def run_program(
    payload: Path, request: ProgramRequest, sizes: SizeRange | None, database: str | None, *, as_json: bool
) -> int:
    """Runs a program, at several sizes of ``sizes`` if given; prints the outcome; returns the exit code.

    ``payload``: the name of the program, for messages.
    """
    request = replace(request, database=known_url(database))
    if sizes is not None:
        return _run_sizes(payload, request, sizes, as_json=as_json)
    text = request.text
    with named_in_errors(str(payload), text), noting_slowness(payload, text):
        report = run_in_child(request, RUN_TIMEOUT_S, partial(click.echo, nl=False, err=as_json))
    report = replace(report, defects=tuple(in_file(defect, str(payload), text) for defect in report.defects))
    if as_json:
        print_json(run_document(request, report))
    else:
        print(report.printed, end="")
        lines = wrapped([*matmul_lines(report), *report_lines(request.target, report)], screen_columns())
        if request.is_explained:
            explained = explained_lines(report, payload, database_text(database))
            lines += wrapped(explained, screen_columns())
        print("\n".join(lines))
    if request.has_schedule and not all(comparison.is_equal for comparison in report.comparisons):
        hint = f"its schedule changes what it computes: tuner apply {shlex.quote(str(payload))}"
        print(error_lines("", hint), file=sys.stderr)
    if report.is_right:
        return DONE
    return FAILED


def _run_sizes(payload: Path, request: ProgramRequest, sizes: SizeRange, *, as_json: bool) -> int:
    """Runs and compares a program of a dynamic size at some sizes; prints the outcome."""
    require_on_cpu(request.target, sizes)
    for option, is_typed in (("--explain", request.is_explained), ("--sample", request.options.sample)):
        if is_typed:
            raise UsageError(f"{option} cannot be combined with --sizes")
    with named_in_errors(str(payload), request.text), noting_slowness(payload, request.text):
        report = in_child(run_sizes, request, sizes, timeout_s=RUN_TIMEOUT_S)
        if isinstance(report, Refusal):
            raise UsageError(report.text, report.hint)
    lines = wrapped(sized_lines(request.target, report), screen_columns())
    print_found(as_json, sized_run_document(request, report), *lines)
    if report.is_right:
        return DONE
    return FAILED


@contextlib.contextmanager
def noting_slowness(payload: Path, text: str, after_s: float = SLOW_S) -> Iterator[None]:
    """Context manager: prints one line on stderr if its body takes longer than ``after_s`` seconds.

    ``text``: MLIR text of ``payload``, whose number of lines is printed.
    """
    lines = text.count("\n") + 1
    line = f"note: {payload}: {lines} lines; still at work, for {RUN_TIMEOUT_S:.0f} s at most"
    timer = threading.Timer(after_s, print, (line,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def tuned_lines(tuned: tuple["TunedKernel", ...]) -> list[str]:
    """Returns a line for each matmul with the script of a stored trial: its problem, strategy and trial."""
    lines = []
    for kernel in tuned:
        schedule = kernel.schedule
        suggested = f"{schedule.origin}, {schedule.candidate.strategy} of trial {schedule.trial}"
        lines.append(f"matmul  {kernel.problem.key}: {suggested}")
    return lines


def matmul_lines(report: "ProgramReport") -> list[str]:
    """Returns a line per distinct matmul that a script implements; first those with a stored trial's script.

    The last line is a note if the scripts of stored trials failed: initial configurations are used then.
    """
    known = {kernel.problem for kernel in report.tuned}
    lines = tuned_lines(report.tuned)
    lines += [f"matmul  {problem.key}" for problem in report.problems if problem not in known]
    if report.given_up:
        lines.append(f"note    {report.given_up}; initial configurations are used")
    return lines


def report_lines(target: "TargetName", report: "ProgramReport") -> list[str]:
    """Returns the outcome of one run of a program on ``target`` as lines for people."""
    lines = [f"call    {line}" for line in report.trace]
    ran = f"ran     @{report.entry} on {target}"
    if report.streams:
        ran += f", creates {count_text(report.streams, 'stream')}"
    lines.append(ran)
    lines += work_lines(report)
    lines += [f"result  {result}" for result in report.results]
    lines += list(map(comparison_line, report.comparisons))
    if report.comparisons:
        lines.append(f"against {report.reference}")
    if report.not_compared:
        why = f"not compared with the text before its schedule: {report.not_compared}"
        lines.append(f"note    {why}; --compare compares with loops")
    lines += list(chain.from_iterable(map(sample_lines, report.samples)))
    lines += [f"found   {text}" for text in report.defects]
    if report.times is not None:
        lines += time_lines(report)
    if report.is_interpreted:
        lines.append("no times: kernels whose threads wait or share memory are interpreted, for comparison")
    if report.is_simulated:
        defects = count_text(len(report.defects), "defect")
        lines.append(f"checked {defects}; no times: the simulator has no clock")
    return lines


def work_lines(report: "ProgramReport") -> list[str]:
    """Returns lines with the kernel launches and copied bytes of one call, with and without fusions.

    Further lines: the bytes kept on the device, and why fusions are apart. [] where no work was recorded.
    """
    if report.work is None:
        return []
    lines = [f"work    {work_text(report.work)}"]
    if report.work_without_fusions is not None:
        lines.append(f"before  {work_text(report.work_without_fusions)}, without fusions")
    if report.resident_bytes:
        lines.append(f"kept    {report.resident_bytes} bytes on the device, copied once")
    for index, fusion in enumerate(report.device_fusions):
        if fusion.reason:
            lines.append(f"apart   fusion {index}, {ops_text(fusion.ops)}: {fusion.reason}")
    return lines


def work_text(work: "DeviceWork") -> str:
    """Returns the kernel launches of a call, and the bytes copied to and from the device, as text."""
    inside = f", {work.copied_inside_bytes} on the device" if work.copied_inside_bytes else ""
    copied = f"{work.copied_in_bytes} bytes to the device, {work.copied_out_bytes} back{inside}"
    return f"{work.launches} launch{'' if work.launches == 1 else 'es'}, {copied}"


def explained_lines(report: "ProgramReport", payload: Path, database: str = "") -> list[str]:
    """Returns the lines of ``tuner run --explain``: a table of fusions, and the command that tunes them.

    For a program without fusions: one line with the reason. The command is left out where each fusion is
    already tuned or has become loops. ``database``: the option ``--db`` of the command with a space before
    it, or "".
    """
    if not report.fusions:
        why = report.why_no_fusions or "none were asked for"
        return [f"whole   no fusions, all of it runs as loops and kernels of matmuls: {why}"]
    lines = fusion_lines(report.fusions, screen_columns())
    if all(fusion.fusion.origin in (TUNED, LOOPS) for fusion in report.fusions):
        return lines
    return [*lines, f"next    tuner tune {shlex.quote(str(payload))} --target cpu --budget 10m{database}"]


def sample_lines(sample: "KernelSample") -> list[str]:
    """Returns lines about one kernel under --sample: how many of its blocks ran, and their comparison.

    Without a reference all blocks ran. A further line says how many blocks the reference did not compute, if
    there are any.
    """
    share = f"{sample.kernel}: {sample.simulated} of {sample.blocks} blocks"
    comparison = sample.comparison
    if not sample.reference:
        return [f"whole   {share}"]
    if comparison is None:
        lines = [f"NOTHING {share}, which wrote nothing that could be compared with {sample.reference}"]
    else:
        error = f"error {comparison.max_error:.3g}, allowed {comparison.tolerance:.3g}"
        elements = f"{sample.elements} elements against {sample.reference}"
        lines = [f"{comparison.verdict:8}{share}, {elements}: {error}"]
    if sample.finished < sample.blocks:
        missing = f"{sample.blocks - sample.finished} of {sample.blocks} blocks"
        lines.append(f"partial {sample.kernel}: {missing} were not done, {sample.reference} takes too long")
    return lines


def call_text(times: ProgramTimes) -> str:
    """Returns the time of a call as text, and the number of processes: "12 us a call in one process".

    For several processes the text has an interval that covers the interval of each process. Another process
    places code and arrays elsewhere in memory.
    """
    call = f"{seconds_text(times.call_s)} a call"
    if times.processes == 1 or times.interval_s is None:
        return f"{call} in one process"
    return f"{call} ({interval_text(times.interval_s)} in {times.processes} processes)"


def time_lines(report: "ProgramReport") -> list[str]:
    """Returns lines with the times of a program on hardware: seconds per call, in kernels, and overlap.

    ``report`` must have times. Kernels and overlap are those of a device.
    """
    assert report.times is not None
    lines = [f"time    {call_text(report.times)}, host to host; {report.times.reliability.text}"]
    if report.times.overlap is not None:
        kernels = f"{seconds_text(report.times.kernel_s)} in kernels"
        warning = ": streams, but kernels run one after another" if report.times.is_serialized else ""
        lines.append(f"kernels {kernels}, overlap {report.times.overlap:.2f}{warning}")
    return lines
