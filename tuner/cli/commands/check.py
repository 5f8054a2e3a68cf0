"""``tuner check``: whether a script, the best trials or recorded kernels are still correct and as fast."""

from pathlib import Path

import click

from tuner.analysis.slowdown import SlowdownLimits
from tuner.cli.options import (
    EXPORTED,
    backends_of,
    database_option,
    dtype_option,
    json_option,
    library_option,
    math_option,
    parse_share,
    seed_option,
)
from tuner.cli.session import settings_given
from tuner.core.errors import UsageError
from tuner.core.text_files import read_text
from tuner.results.queries import trial_query
from tuner.space.scripts.header import read_provenance

NEEDED = {  # option -> the one that it goes with
    **dict.fromkeys(("op", "shape", "dtype", "math", "target"), "--best"),
    **dict.fromkeys(("record", "summary"), "--baseline"),
    "library": "SCRIPT",
}


@click.command()
@click.argument("script", required=False, type=click.Path(path_type=Path))
@click.option("--best", is_flag=True, help="Check the best trials of this machine, as after an upgrade.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Check the kernels of this file, in CI for instance. It holds their code: use no untrusted file.",
)
@click.option(
    "--record",
    multiple=True,
    metavar="ID",
    help="Write this trial into the file of --baseline, or 'best': all best trials of this machine.",
)
@click.option(
    "--max-slowdown",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="The slowdown that is not accepted; see above.",
)
@click.option("--op", metavar="OPERATION", help="Of --best: such as matmul.")
@click.option("--shape", metavar="[Bx]MxNxK", help="Of --best.")
@dtype_option("Of --best.")
@math_option("Of --best: how f32 is multiplied.")
@click.option("--target", help="Of --best: such as cpu, cuda, cuda:sm_90.")
@click.option(
    "--summary", type=click.Path(path_type=Path), metavar="FILE", help="Of --baseline: write Markdown."
)
@library_option
@seed_option("Of the random inputs.")
@database_option
@json_option
@click.pass_context
def check(
    context: click.Context,
    /,
    script: Path | None,
    best: bool,
    baseline: Path | None,
    record: tuple[str, ...],
    max_slowdown: str,
    summary: Path | None,
    libraries: tuple[Path, ...],
    seed: int,
    database: str | None,
    as_json: bool,
    **conditions: object,
) -> None:
    """Verifies an exported script, the best trials, or recorded kernels, and times them again.

    SCRIPT is timed interleaved with the baseline library and a reference kernel. The file with its provenance
    next to it has their times from when it was recorded, so the speed of the machine today cancels; without a
    recorded time it is verified only. --best compiles the best trials again: one whose code is unchanged
    keeps its time, changed code is verified and timed in a new run, and the old time becomes stale.
    --baseline compiles recorded kernels again and times changed code interleaved with the recorded code;
    --record writes the file.

    A kernel is slower if the whole confidence interval of its slowdown lies above a limit and above the
    noise. The limit is --max-slowdown minus 3 percentage points, but at least 2 %. Changed code of --best is
    compared as a SCRIPT is.

    Exits with 0 where all is correct and no slowdown is shown; with 1 where a result is wrong, fails or is
    slower; with 3 where a script is for another processor and only compiled, or is correct and a slowdown is
    neither shown nor ruled out: on a busy or another machine, or if the recorded time is unreliable. Kernels
    of --baseline that are too noisy to decide pass, with a note.

    Example: tuner check best.mlir, or tuner check --baseline gate.json --record best
    """
    _require_one_subject(context, script, is_best=best, has_baseline=baseline is not None)
    limits = SlowdownLimits.up_to(parse_share(max_slowdown))
    if script is not None:
        context.exit(_check_script(context, script, libraries, limits, seed, as_json=as_json))
    query = trial_query(operation=conditions.pop("op"), **conditions)
    from tuner.cli import checked  # takes long to load: the options are right

    backends = backends_of(context)
    if baseline is None:
        code = checked.check_best(backends, query, limits, seed, database, as_json=as_json)
    elif record:
        code = checked.record(backends, baseline, record, database, as_json=as_json)
    else:
        code = checked.check_baseline(backends, baseline, limits, summary, seed, as_json=as_json)
    context.exit(code)


def _require_one_subject(
    context: click.Context, script: Path | None, *, is_best: bool, has_baseline: bool
) -> None:
    subjects = {"SCRIPT": script is not None, "--best": is_best, "--baseline": has_baseline}
    typed = [name for name, is_given in subjects.items() if is_given]
    if len(typed) != 1:
        typed_text = " and ".join(typed) or "none"
        raise UsageError(f"check: found {typed_text}, allowed one of SCRIPT, --best and --baseline FILE")
    for option in settings_given(context, {name for name, needed in NEEDED.items() if needed != typed[0]}):
        raise UsageError(f"{option} needs {NEEDED[option.lstrip('-')]}")


def _check_script(
    context: click.Context,
    script: Path,
    libraries: tuple[Path, ...],
    limits: SlowdownLimits,
    seed: int,
    *,
    as_json: bool,
) -> int:
    if str(script) == "-":
        raise UsageError("check: a script on standard input has no provenance", "tuner check best.mlir")
    text = read_text(script, "MLIR text", hint=EXPORTED)
    provenance = read_provenance(script, text)
    from tuner.cli.checked import check_script  # takes long to load: the files are right

    libraries_of = (str(script), libraries)
    return check_script(backends_of(context), text, provenance, libraries_of, limits, seed, as_json=as_json)
