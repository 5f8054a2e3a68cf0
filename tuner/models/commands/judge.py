"""``tuner judge``: verifies and times scripts that somebody else wrote, one or a stream of them."""

from pathlib import Path
from typing import Any

import click

from tuner.cli.forms import named_target
from tuner.cli.main import DONE, FAILED
from tuner.cli.options import SUFFIX, backends_of, database_option, seed_option, target_options
from tuner.core.errors import UsageError
from tuner.core.requests import require_number
from tuner.core.serialization import parse_seconds
from tuner.core.text_files import read_text
from tuner.models.commands.evaluated_problem import PROBLEM_EXAMPLE, problem_of_words, required_problem
from tuner.targets.backends import resolve_target

MIB = 1 << 20
LEAST_MIB = 512  # a compile worker has 192 MiB before it compiles
STDIN = "-"


@click.command()
@click.argument("script", metavar="SCRIPT | -")
@click.option(
    "--problem", metavar="PROBLEM", help=f"Such as '{PROBLEM_EXAMPLE}', or a .mlir file with one operation."
)
@target_options
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--baseline", default="", help="Library to compare with, or 'best'. Default: the target's.")
@click.option("--timeout", metavar="TIME", help="To compile a script, and to load and run it: 20s.")
@click.option("--memory", type=int, metavar="MIB", help="Of the process that compiles, or runs, a script.")
@seed_option("Of the random inputs.")
@database_option
@click.option("--json", is_flag=True, expose_value=False, help="Without it, too: an answer is always JSON.")
@click.pass_context
def judge(
    context: click.Context,
    /,
    script: str,
    problem: str | None,
    database: str | None,
    **options: Any,
) -> None:
    """Verifies and times a script that somebody else wrote; prints one JSON document.

    SCRIPT is a transform script in plain MLIR without open knobs. It is compiled, verified and timed in child
    processes under limits, as a trial of 'tuner tune' is; then timed again, interleaved with the best trial
    of the problem so far and the baseline, and verified on NaN, infinity and subnormal numbers. The document
    says whether it is correct; where it failed (stage, reason, line and op of the script); its time with
    interval and reliability, next to the baseline and the best; what differs from the best, op by op; and
    which of its steps changed nothing. It is stored as a trial of a run 'judged'.

    With - each line of standard input is a JSON object with a script, as text or as the name of a file, and
    its problem if it is not that of --problem; name and id are optional. Each is answered by a line, with the
    id, by processes that stay warm. A line that is wrong gets the key "error", and the next one is read.

    Exits with 0 where the script is correct, with 1 where it is not; with - at the end of the input with 0.

    Example: tuner judge mine.mlir --problem "matmul 512x512x512 f32", or tuner judge - < scripts.jsonl
    """
    limits = _limits(options.pop("timeout"), options.pop("memory"))
    require_number("threads", options["threads"], 1)
    submitted = ""
    if script != STDIN:
        submitted = read_text(Path(script), "MLIR text")
        required_problem(problem)
    if problem is not None and not problem.endswith(SUFFIX):
        problem_of_words(problem)  # a wrong one is reported first
    backends = backends_of(context)
    named = named_target(options.pop("target"), options.pop("cpu"))
    target = resolve_target(named, backends, options.pop("chip"))
    from tuner.models.commands.evaluated import (  # loads MLIR: the options are right
        evaluate_lines,
        evaluate_script,
    )

    settings = {**options, **limits}
    if script == STDIN:
        evaluate_lines(backends, target, problem, database, settings)
        context.exit(DONE)
    is_correct = evaluate_script(backends, target, problem, database, settings, (Path(script), submitted))
    if is_correct:
        context.exit(DONE)
    context.exit(FAILED)


def _limits(timeout: str | None, memory: int | None) -> dict[str, Any]:
    if memory is not None and memory < LEAST_MIB:
        raise UsageError(f"memory: found {memory}, allowed {LEAST_MIB} MiB or more: the compiler needs it")
    return {
        "timeout_s": None if timeout is None else parse_seconds(timeout),
        "memory_bytes": None if memory is None else memory * MIB,
    }
