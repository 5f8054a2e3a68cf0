"""``tuner audit``: whether the best trials are still correct and as fast after an upgrade."""

from typing import TYPE_CHECKING, Any

import click

from tuner.cli.main import DONE, FAILED
from tuner.cli.options import (
    composition_of,
    database_option,
    json_option,
    open_known_store,
    parse_share,
    print_found,
    seed_option,
)
from tuner.cli.screen import screen_columns
from tuner.core.time_text import seconds_text
from tuner.output.formatting import count_text, one_line, wrapped

if TYPE_CHECKING:
    from tuner.regression.audit import Audited


@click.command()
@click.option("--op", help="Operation, such as matmul.")
@click.option("--shape", metavar="[Bx]MxNxK")
@click.option("--dtype")
@click.option("--target", help="Such as cpu, cuda, cuda:sm_90.")
@click.option("--max-slowdown", default="5%", show_default=True, metavar="SHARE", help="Slower is flagged.")
@seed_option("Of the random inputs.")
@database_option
@json_option
@click.pass_context
def audit(
    context: click.Context,
    /,
    op: str | None,
    max_slowdown: str,
    seed: int,
    database: str | None,
    as_json: bool,
    **conditions: object,
) -> None:
    """Recompiles the best trials of this machine after an upgrade; verifies and times changed code again.

    A trial whose code is unchanged keeps its time. Changed code is verified and timed in a new run; the old
    time is marked stale and is no longer selected. Exits with 1 where a best trial is slower, fails or cannot
    be evaluated.

    Example: tuner audit --shape 512x512x512
    """
    from tuner.regression.audit import audit as audited_best_trials
    from tuner.run_history.past_runs import asked_query

    limit = parse_share(max_slowdown)
    query = asked_query(operation=op, **conditions)
    results = []
    with open_known_store(database) as store:
        for audited in audited_best_trials(composition_of(context), store, query, limit, seed):
            results.append(audited)
            if not as_json:
                click.echo("\n".join(wrapped([_line(audited)], screen_columns())))
    flagged = sum(not audited.status.holds for audited in results)
    document = {"audited": [_document(each) for each in results], "flagged": flagged}
    print_found(as_json, document, f"{count_text(len(results), 'best')} audited, {flagged} flagged")
    context.exit(FAILED if flagged else DONE)


def _line(audited: "Audited") -> str:
    record = audited.trial.record
    what = f"trial {audited.trial.id}  {record.problem.key} {record.target}"
    now = "" if audited.now_s is None else f" {seconds_text(audited.now_s)},"
    stored = "" if audited.run is None else f" (run {audited.run})"
    return f"{what}  {audited.status.value}:{now} {one_line(audited.reason)}{stored}"


def _document(audited: "Audited") -> dict[str, Any]:
    record = audited.trial.record
    return {
        "trial": audited.trial.id,
        "problem": record.problem.key,
        "target": record.target.text,
        "threads": audited.trial.threads,
        "candidate": record.candidate.text,
        "status": audited.status.value,
        "holds": audited.status.holds,
        "reason": audited.reason,
        "reliability": audited.trial.reliability.text,  # of the recorded time
        "recorded_s": audited.trial.best_s,
        "now_s": audited.now_s,
        "run": audited.run,
    }
