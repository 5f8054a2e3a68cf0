"""``tuner run``: a whole MLIR function on a GPU, on the simulated one, or on the host."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tuner.cli.commands import DONE, FAILED
from tuner.cli.options import composition_of, debug_option, json_option, print_json, target_options
from tuner.errors import UsageError

if TYPE_CHECKING:
    from tuner.program_run import ProgramReport, ProgramRequest

RUN_TIMEOUT_S = 600.0
GPUS = ("cuda", "simulator")
OF_TARGETS = {"form": GPUS, "pinned": GPUS, "trace": GPUS, "order": ("simulator",)}  # others do without


@click.command()
@click.argument("payload", type=click.Path(path_type=Path, allow_dash=True))
@target_options
@click.option("--entry", metavar="NAME", help="Function to run. Default: the only public one.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="N=[SIZES]CONTENT",
    help="An argument, such as 0=[64,64]zeros; others are random.",
)
@click.option("--form", default="streams", show_default=True, help="streams, tokens or sync.")
@click.option("--order", default="fifo", show_default=True, help="Of the simulator: fifo, lifo or random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of random arguments and order.")
@click.option("--pinned", is_flag=True, help="Page-lock the host memory that is copied.")
@click.option("--trace", is_flag=True, help="Print what the program asks of the device, one line per call.")
@click.option("--compare", is_flag=True, help="Compare with the same payload as loops on the host.")
@json_option
@debug_option
@click.pass_context
def run(context: click.Context, /, payload: Path, as_json: bool, **words: Any) -> None:
    """Compiles and runs a program of several operations; - is stdin.

    Exits with 1 when results differ, or the simulator finds work that nothing orders, a leak or the like.
    Contents of arrays are random, range, zeros, ones, nan, a number or @FILE.npy.

    Example: tuner run payload.mlir --target simulator --trace --compare
    """
    from tuner.text_file import read_text_or_stdin
    from tuner.tuning.program_service import run_in_child

    request = _request(context, read_text_or_stdin(payload, "MLIR text"), **words)
    report = run_in_child(request, RUN_TIMEOUT_S)
    if as_json:
        from tuner.program_report import run_document

        print_json(run_document(request, report))
    else:
        matmuls = [f"matmul  {problem.key}" for problem in report.problems]
        print("\n".join([*matmuls, *report_lines(request.target, report)]))
    context.exit(DONE if report.is_right else FAILED)


def report_lines(target: str, report: "ProgramReport") -> list[str]:
    """Returns what was run and found, for people."""
    from tuner.cli.words import count_text

    lines = [f"call    {line}" for line in report.trace]
    lines.append(f"ran     @{report.entry} on {target}, {_streams(report)}")
    lines += [f"result  {result}" for result in report.results]
    for one in report.comparisons:
        blind = ", which zeros are within as well" if one.verdict == "unclear" else ""
        lines.append(
            f"{one.verdict:8}{one.name}: error {one.max_error:.3g}, allowed {one.tolerance:.3g}{blind}"
        )
    lines += [f"found   {text}" for text in report.reports]
    if report.times is not None:
        lines += time_lines(report)
    if target.startswith("simulator"):
        lines.append(
            f"checked {count_text(len(report.reports), 'defect')}; no times: the simulator has no clock"
        )
    return lines


def time_lines(report: "ProgramReport") -> list[str]:
    """Returns the times of a program on hardware."""
    from tuner.cli.words import seconds_text

    assert report.times is not None
    lines = [f"time    {seconds_text(report.times.call_s)} a call, host to host"]
    if report.times.overlap is not None:
        kernels = f"{seconds_text(report.times.kernel_s)} in kernels"
        warning = ": streams, but kernels run one after another" if report.times.is_serialized else ""
        lines.append(f"kernels {kernels}, overlap {report.times.overlap:.2f}{warning}")
    return lines


def _streams(report: "ProgramReport") -> str:
    from tuner.cli.words import count_text

    return count_text(report.streams, "stream") if report.streams else "no streams of its own"


def _request(
    context: click.Context,
    text: str,
    target: str,
    chip: str,
    entry: str | None,
    arguments: tuple[str, ...],
    form: str,
    order: str,
    seed: int,
    pinned: bool,
    trace: bool,
    compare: bool,
) -> "ProgramRequest":
    from tuner.api import resolve_target
    from tuner.program_run import FORMS, ORDERS, ProgramRequest
    from tuner.tuning.program_devices import require_program_target

    _require("form", form, FORMS)
    _require("order", order, ORDERS)
    if seed < 0:
        raise UsageError(f"seed: found {seed}, allowed 0 or more")
    resolved = resolve_target(target, composition_of(context), chip)
    require_program_target(resolved)
    for name, kinds in OF_TARGETS.items():
        if resolved.kind not in kinds and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name}: found for target {resolved.text}, allowed for {', '.join(kinds)}")
    return ProgramRequest(
        text=text,
        target=resolved.text,
        entry=entry,
        form=next(known for known in FORMS if known == form),
        arguments=arguments,
        seed=seed,
        order=order,
        is_traced=trace,
        is_compared=compare,
        is_pinned=pinned,
    )


def _require(what: str, found: str, allowed: tuple[str, ...]) -> None:
    if found not in allowed:
        raise UsageError(f"{what}: found {found!r}, allowed {', '.join(allowed)}")
