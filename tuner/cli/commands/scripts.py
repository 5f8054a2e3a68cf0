"""``tuner check`` and ``tuner apply``: scripts as files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.main import DONE, FAILED
from tuner.cli.options import composition_of, debug_option, json_option, parse_share, print_json, seed_option
from tuner.core.errors import Failure, UsageError
from tuner.text_file import read_text_or_stdin

if TYPE_CHECKING:
    from tuner.core.record import Measurement, Verdict
    from tuner.scripts.header import ScriptProvenance
    from tuner.tuning.composition import Composition


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.option("--max-slowdown", default="5%", show_default=True, metavar="SHARE", help="Slower fails.")
@seed_option("Of the random inputs.")
@json_option
@debug_option
@click.pass_context
def check(context: click.Context, script: Path, max_slowdown: str, seed: int, as_json: bool) -> None:
    """Verifies and times an exported script again on this machine; one without a time is verified only.

    Exits with 1 when it is wrong, or slower than recorded by more than --max-slowdown.

    Example: tuner check best.mlir --max-slowdown 10%
    """
    from tuner.core.record import Measurement
    from tuner.scripts.header import read_provenance, without_header

    limit = parse_share(max_slowdown)
    text = read_text_or_stdin(script, "MLIR text")
    provenance = read_provenance(text, script.name)
    composition = composition_of(context)
    if composition.kind(provenance.target).machine(provenance.target).name != provenance.machine:
        print(f"tuner: {script.name}: recorded on {provenance.machine!r}, another machine", file=sys.stderr)
    found = _judged_again(composition, provenance, without_header(text), seed)
    median_s = found.median_s if isinstance(found, Measurement) else None
    recorded_s = provenance.median_s
    ratio = None if median_s is None or recorded_s is None else median_s / recorded_s
    is_correct = not isinstance(found, Failure)
    has_passed = is_correct and (recorded_s is None or (ratio is not None and ratio <= 1 + limit))
    if as_json:
        document = {"correct": is_correct, "median_s": median_s}
        print_json({**document, "recorded_s": recorded_s, "ratio": ratio, "passed": has_passed})
    else:
        print(_check_line(found, recorded_s, ratio, limit))
    context.exit(DONE if has_passed else FAILED)


@click.command()
@click.argument("script", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("payload", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--allow-effects", is_flag=True, help="Also passes that write files or start programs.")
@debug_option
@json_option
@click.pass_context
def apply(context: click.Context, script: Path, payload: Path, allow_effects: bool, as_json: bool) -> None:
    """Applies a transform script, ours or any upstream one, and prints the payload; - is stdin.

    A script runs passes by name. Those that write files, start programs or print are refused unless
    --allow-effects says that the script is trusted.

    Example: tuner apply best.mlir best.source.mlir
    """
    if str(script) == str(payload) == "-":
        raise UsageError("apply: found - twice, allowed once: stdin can be read as one of both")
    script_text, payload_text = (read_text_or_stdin(path, "MLIR text") for path in (script, payload))
    text = composition_of(context).apply(script_text, payload_text, allow_effects)
    if as_json:
        print_json({"payload": text})
    else:
        print(text.rstrip("\n"))


def _judged_again(
    composition: "Composition", provenance: "ScriptProvenance", script: str, seed: int
) -> "Measurement | Verdict | Failure":
    """Verifies and times the script in child processes, as a run does with a finalist."""
    from tuner.core.candidate import Candidate
    from tuner.core.target import Script
    from tuner.tuning.judged_again import JudgedCase, bench_of, judged

    case = JudgedCase(provenance.problem, provenance.target, provenance.threads, seed)
    with bench_of(composition, case, lambda _candidate: Script.of(script)) as bench:
        return judged(bench, Candidate(provenance.strategy, provenance.knobs)).record.outcome


def _check_line(
    found: "Measurement | Verdict | Failure", recorded_s: float | None, ratio: float | None, limit: float
) -> str:
    from tuner.cli.output.formatting import seconds_text
    from tuner.core.record import Verdict

    if isinstance(found, Failure):
        return f"failed at stage {found.stage.value}: {found.reason}"
    if isinstance(found, Verdict):
        return f"correct; {found.elements} elements verified, nothing timed"
    if recorded_s is None or ratio is None:
        return f"correct; {seconds_text(found.median_s)}, no time recorded"
    words = f"{seconds_text(found.median_s)}, recorded {seconds_text(recorded_s)}: ratio {ratio:.3f}"
    return f"correct; {words} ({'within' if ratio <= 1 + limit else 'more than'} {limit:.0%} slower)"
