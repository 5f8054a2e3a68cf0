"""``tuner check`` and ``tuner apply``: check a transform script, or apply it to a payload."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.main import DONE, FAILED, UNDECIDED
from tuner.cli.options import composition_of, json_option, parse_share, print_found, seed_option
from tuner.cli.screen import screen_columns
from tuner.core.described_processors import processor_of
from tuner.core.errors import UsageError, error_lines
from tuner.core.instruction_sets import require_instructions
from tuner.core.text_file import read_text_or_stdin
from tuner.output.formatting import wrapped

if TYPE_CHECKING:
    from tuner.core.machine import Machine
    from tuner.tuning.composition import Composition


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.option(
    "--max-slowdown",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="A slowdown of this size is found; see above.",
)
@seed_option("Of the random inputs.")
@json_option
@click.pass_context
def check(context: click.Context, script: Path, max_slowdown: str, seed: int, as_json: bool) -> None:
    """Verifies an exported script and times it again; one without a recorded time is verified only.

    The code is timed in several sessions, interleaved with the baseline library and a reference kernel. The
    script's header has their times from when it was recorded; the slowdown is relative to them, so the speed
    of the machine today cancels.

    A slowdown is tolerated up to --max-slowdown minus 3 percentage points, but at least up to 2 %. Exits with
    0 where the script is correct and the confidence interval ends below the middle between the tolerated
    slowdown and --max-slowdown (below --max-slowdown itself if that is less), or there is no time to compare;
    with 1 where it is wrong, fails, or is slower: the whole interval lies above the tolerated slowdown and
    above the noise; with 3 where it is correct and neither is shown: on a busy or another machine, or for
    want of a reliable recorded time; also where it is for another processor and cannot run here.

    Example: tuner check best.mlir --max-slowdown 10%
    """
    from tuner.cli.script_check import check_document, check_lines
    from tuner.regression.script_check import CheckFinding, checked, limits_of
    from tuner.scripts.header import read_provenance, without_header

    limits = limits_of(parse_share(max_slowdown))
    text = read_text_or_stdin(script, "MLIR text")
    provenance = read_provenance(text, script.name)
    found = checked(composition_of(context), provenance, without_header(text), limits, seed)
    lines = wrapped(check_lines(found, provenance.median_s), screen_columns())
    document = check_document(found, provenance.median_s, provenance.time_reliability)
    print_found(as_json, document, *lines)
    if found.hint:
        print(error_lines("", found.hint), file=sys.stderr)
    is_undecided = found.finding in (CheckFinding.CANNOT_TELL, CheckFinding.COMPILED)
    context.exit(DONE if found.finding.passes else UNDECIDED if is_undecided else FAILED)


@click.command()
@click.argument("script", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("payload", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--allow-effects", is_flag=True, help="Also passes that write files or start programs.")
@click.option(
    "--cpu", default="", metavar="NAME", help="The result is for this processor: sapphirerapids, znver4, ..."
)
@click.option("--strict", is_flag=True, help="Of a library: exit with 1 where it left a contraction alone.")
@json_option
@click.pass_context
def apply(
    context: click.Context,
    script: Path,
    payload: Path,
    allow_effects: bool,
    cpu: str,
    strict: bool,
    as_json: bool,
) -> None:
    """Applies a transform script of any origin to a payload and prints the result; - is stdin.

    A script runs passes by name. Those that write files, start programs or print are refused unless
    --allow-effects says that the script is trusted. A script whose result needs instructions that this
    machine does not have is refused, unless --cpu or the script's header names another processor.

    Of a library of several schedules it lists each contraction of the payload on stderr: the entry that
    took it, or why none did.

    Example: tuner apply best.mlir best.source.mlir
    """
    from tuner.cli.library_apply import applied, applied_library
    from tuner.library.library_document import is_library
    from tuner.scripts.needed_instructions import instructions_needed

    if cpu:
        processor_of(cpu)
    if str(script) == str(payload) == "-":
        raise UsageError("apply: only one of SCRIPT and PAYLOAD can be '-' (stdin)")
    script_text, payload_text = (read_text_or_stdin(path, "MLIR text") for path in (script, payload))
    composition = composition_of(context)
    needs = instructions_needed(script_text, "bf16" if "bf16" in payload_text else "i8")
    if needs:
        require_instructions(_result_machine(composition, cpu, script_text), needs, script.name)
    if is_library(script_text):
        reports = applied_library(composition, script_text, payload_text, script.name, as_json=as_json)
        context.exit(FAILED if strict and not all(report.entry for report in reports) else DONE)
    if strict:
        raise UsageError(f"--strict: {script} is not a library", "tuner export --format library -o DIR")
    text = applied(composition, script_text, payload_text, script.name, allows_effects=allow_effects)
    print_found(as_json, {"payload": text}, text.rstrip("\n"))


def _result_machine(composition: "Composition", cpu: str, script_text: str) -> "Machine":
    """Returns the machine that a script's result is for: ``cpu``, else that of its header, else this one."""
    from tuner.scripts.header import MARK, read_provenance

    if cpu:
        return processor_of(cpu).machine
    if MARK in script_text:
        target = read_provenance(script_text, "script").target
        if target.is_on_cpu and target.detail:
            return processor_of(target.detail).machine
    return composition.machine()
