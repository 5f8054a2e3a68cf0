"""``tuner portfolio``: a few configurations for all problems of a campaign, also as a rule file."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.options import (
    RunOrCampaign,
    backends_of,
    database_option,
    json_option,
    open_existing_store,
    print_found,
)
from tuner.cli.session import ended_by_signals
from tuner.core.candidate import candidate_document
from tuner.core.reliability import reliability_of_all
from tuner.core.serialization import count_text, seconds_text
from tuner.results.output.files import write_atomically
from tuner.results.output.formatting import knobs_text, problem_text, wrapped
from tuner.tuning.events import Interruption

if TYPE_CHECKING:
    from tuner.analysis.portfolio import Regret
    from tuner.db.store import Store
    from tuner.results.portfolio import CampaignPortfolio
    from tuner.targets.backends import Backends


@click.command()
@click.argument("campaign", type=RunOrCampaign())
@click.option("--configs", type=int, required=True, metavar="K", help="Number of configurations.")
@click.option("--stock", is_flag=True, help="Only configurations whose scripts stock mlir-opt runs.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Rule file to write: mm.rule.yaml.")
@database_option
@json_option
@click.pass_context
def portfolio(
    context: click.Context,
    campaign: int,
    configs: int,
    stock: bool,
    output: Path | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Chooses the K configurations that serve the problems of a campaign with the least loss.

    A campaign is many problems tuned under one budget: tuner tune --shapes, or a program.

    Times that chosen configurations lack are measured first, and stored as trials of the runs. Then it prints
    the configurations, what each problem loses, and the efficiency (best known time / time): in sample, and
    with each problem held out while the configurations were chosen.

    With -o it writes a rule file: the configurations, and their times on the problems. tuner.matmul(a, b,
    rule="mm.rule.yaml") serves shapes by it, those never tuned too, on this machine.

    Example: tuner portfolio campaign:1 --configs 8 -o mm.rule.yaml
    """
    with open_existing_store(database) as store:
        chosen = _measured(store, backends_of(context), campaign, configs, stock)
    in_sample = chosen.regret()
    held_out = chosen.regret(held_out=True)
    document = portfolio_document(chosen, in_sample, held_out)
    lines = [*_lines(chosen, in_sample, held_out)]
    if output is not None:
        from tuner.results.portfolio import rule_of  # not at start-up
        from tuner.tuning.rule import rule_text  # not at start-up

        rule = rule_of(chosen)
        write_atomically(output, rule_text(rule).encode())
        columns = count_text(len(rule.columns), "configuration")
        document["file"] = str(output)
        lines.append(f"wrote {output}: {columns}, {count_text(len(rule.problems), 'problem')}")
    print_found(as_json, document, *wrapped(lines))


def portfolio_document(
    chosen: "CampaignPortfolio", in_sample: "Regret", held_out: "Regret"
) -> dict[str, Any]:
    """Returns the JSON document of ``tuner portfolio``.

    ``in_sample``: efficiencies with the chosen configurations; ``held_out``: of each problem, with
    configurations that were chosen without it.
    """
    serving = chosen.portfolio.serving
    losses = (in_sample.losses, held_out.losses, chosen.names, serving, chosen.measured.reliability)
    return {
        "campaign": chosen.campaign,
        "reliability": reliability_of_all(chosen.measured.reliability).text,
        "configurations": [
            {**candidate_document(candidate), "problems": serving.count(column)}
            for column, candidate in zip(chosen.portfolio.columns, chosen.columns, strict=True)
        ],
        "in_sample": _figures(in_sample),
        "held_out": _figures(held_out),
        "problems": [
            {
                "problem": loss.problem.key,
                "name": name,
                "configuration": None if column is None else chosen.portfolio.columns.index(column),
                "reliability": trust.text,
                "efficiency": loss.efficiency if trust.is_reliable else None,
                "held_out_efficiency": without.efficiency if trust.is_reliable else None,
            }
            for loss, without, name, column, trust in zip(*losses, strict=True)
        ],
        "predicted": len(chosen.missing),
    }


def _figures(regret: "Regret") -> dict[str, float | int | None]:
    return {name: getattr(regret, name) for name in ("geomean", "worst", "total", "unknown")}


def _measured(
    store: "Store", backends: "Backends", campaign: int, configs: int, is_stock: bool
) -> "CampaignPortfolio":
    from tuner.results.portfolio import measured_portfolio  # not at start-up: loads the strategies

    def report(missing: int) -> None:
        click.echo(f"measuring {count_text(missing, 'missing time')} of the chosen configurations", err=True)

    interruption = Interruption()
    with ended_by_signals(interruption):
        return measured_portfolio(
            campaign, configs, backends, store, interruption, is_stock=is_stock, report_missing=report
        )


def _lines(chosen: "CampaignPortfolio", in_sample: "Regret", held_out: "Regret") -> Iterator[str]:
    serving = chosen.portfolio.serving
    yield f"campaign {chosen.campaign}: {count_text(len(chosen.columns), 'configuration')}"
    columns = zip(chosen.portfolio.columns, chosen.columns, strict=True)
    for number, (index, candidate) in enumerate(columns, start=1):
        problems = count_text(serving.count(index), "problem")
        yield f"  {number}  {problems}: {candidate.strategy} {knobs_text(candidate.choices)}"
    yield "problem: configuration, time, efficiency"
    trusts = chosen.measured.reliability
    matrix = chosen.measured.matrix
    times_s = dict(zip(matrix.problems, matrix.times_s, strict=True))
    for loss, name, column, trust in zip(in_sample.losses, chosen.names, serving, trusts, strict=True):
        time_s = None if column is None else times_s[loss.problem][column]
        shown = "no time" if time_s is None else seconds_text(time_s)
        is_known = loss.efficiency is not None and trust.is_reliable
        efficiency = f"{loss.efficiency:.3f}" if is_known else "unknown"
        efficiency += "" if trust.is_reliable else f" ({trust.text})"
        used = "none" if column is None else str(chosen.portfolio.columns.index(column) + 1)
        yield f"  {problem_text(loss.problem)}{f' {name}' if name else ''}: {used}, {shown}, {efficiency}"
    whole = reliability_of_all(trusts)
    doubt = "" if whole.is_reliable else f"; {whole.text}"
    yield f"in sample:  {_figures_text(in_sample)}{doubt}"
    yield f"held out:   {_figures_text(held_out)}{doubt}"
    if chosen.missing:
        yield f"{count_text(len(chosen.missing), 'time')} could not be measured and are predicted"


def _figures_text(regret: "Regret") -> str:
    if regret.geomean is None or regret.worst is None:
        return "unknown: too few times"
    unknown = f"; {count_text(regret.unknown, 'problem')} without a time" if regret.unknown else ""
    return f"geometric mean {regret.geomean:.3f}, worst {regret.worst:.3f}{unknown}"
