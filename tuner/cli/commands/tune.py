"""``tuner tune``: searches for the best schedule of a problem, on one machine class or on several."""

from pathlib import Path
from typing import Any, final

import click

from tuner.cli.options import (
    RunOrCampaign,
    backends_of,
    database_option,
    fleet_options,
    json_option,
    library_option,
    problem_options,
    space_option,
    target_options,
)
from tuner.search.samplers import OPTUNA, SAMPLERS

HEADINGS = {  # of the help -> options
    "Problem": "dtype math layout epilogue output-dtype align cache constant scales target cpu entry arg "
    "sizes shapes",
    "Search": "strategy library reopen space sampler trials budget seed workers fresh no-warm-start "
    "warm-start seeds resume",
    "Measurement": "threads baseline retime",
    "Output": "db json debug help",
    "GPUs": "chip",
    "Quantized weights": "weights group-size scale-dtype zero-points activations",
    "Fleet": "fleet on machine devices priority",
}


@final
class UnderHeadings(click.Command):
    """A click command whose help lists its options under headings (HEADINGS)."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in HEADINGS.items():
            flags = {f"--{name}" for name in names.split()}
            chosen = (param for param in self.get_params(context) if not flags.isdisjoint(param.opts))
            with formatter.section(heading):
                formatter.write_dl(
                    [record for option in chosen if (record := option.get_help_record(context))]
                )


@click.command(cls=UnderHeadings)
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="[Bx]MxNxK")
@problem_options
@target_options
@click.option(
    "--strategy", "strategies", multiple=True, help="Strategy to try; may be repeated. Default: all that fit."
)
@library_option
@click.option(
    "--reopen",
    is_flag=True,
    help="With a script of --strategy that selects values of its knobs, as exported ones do: opens its knobs "
    "again, so that all their options are searched.",
)
@space_option
@click.option(
    "--sampler",
    help=f"How to choose: {', '.join(SAMPLERS)}, or {OPTUNA}NAME, one of Optuna's own. "
    "Default: tpe; random where nothing is timed.",
)
@click.option(
    "--trials",
    type=int,
    help="Ends after so many. Default: 100 without --budget. 0: prints the configuration to use untuned.",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="Ends after 60s, 5m or 1h, with its final re-measurement.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds propose equal trials.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--workers", type=int, help="Candidates compiled at once. Default: the cores, at most 4.")
@click.option("--fresh", is_flag=True, help="Measure again what earlier runs have measured.")
@click.option(
    "--no-warm-start",
    "warm_start",
    flag_value=False,
    default=True,
    help="Begin with nothing that was best for other problems.",
)
@click.option(
    "--warm-start",
    "warm_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Begin with the best of a recorded space (T4 file), too; may be repeated.",
)
@click.option(
    "--seeds",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Try the configurations of this file before all others: JSON lines with strategy and knobs, or with "
    "the file of a script; may be repeated.",
)
@click.option(
    "--baseline",
    default="",
    metavar="LIBRARY",
    help="Of a CPU: a library such as openblas, mkl or onednn, or best: the fastest of those installed. "
    "Default: openblas; for bf16, f16 and i8 oneDNN if installed, else openblas on f32; best with --weights. "
    "Another word lists all libraries. Of a PyTorch model: all, eager, torch.compile or none. Default: all.",
)
@fleet_options
@click.option("--entry", metavar="NAME", help="Function of a payload. Default: the only public one.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="N=[SIZES]CONTENT",
    help="An argument of a payload, as for tuner run; others are random.",
)
@click.option(
    "--sizes",
    metavar="A..B",
    help="Range of the one dynamic size n of a payload, on a CPU: some sizes of it are tuned in turn.",
)
@click.option(
    "--shapes",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Tune all problems of a file as a campaign: one budget for all, a run for each. .yaml or .csv with "
    "shape, count and name, or .mlir.",
)
@click.option(
    "--resume",
    type=RunOrCampaign(),
    metavar="RUN",
    help="Continue a run, or a campaign (campaign:N, the runs of --shapes or of a program), by its stored "
    "settings, or to another --trials or --budget.",
)
@click.option(
    "--retime",
    is_flag=True,
    help="With --resume: re-measure the best. Each round is kept; the quietest one selects the result.",
)
@database_option
@json_option
@click.pass_context
def tune(context: click.Context, /, **_options: Any) -> None:
    """Tunes one operation at one size, or each matmul of a program or file; every trial is stored.

    OPERATION is matmul, of the shape MxNxK (C = A B, A of M x K), batch_matmul, of BxMxNxK, or
    grouped_matmul, of GxMxNxK (G groups of rows); or the path of a program, without a shape. --weights and
    --constant are of matmul. 1..4096xNxK is a range: one campaign tunes kernels of a few M, which serve each
    M of it.

    Ctrl-C ends the run without loss; a second one kills at once. A program is a .mlir file: its matmuls are
    tuned one after another, then it runs as a whole. With --shapes, many problems share one budget: those of
    a file, or all contractions of a model.

    Example: tuner tune matmul 512x512x512 --dtype f32 --budget 60s
    """
    from tuner.cli.tune_forms import OperationForm, form_of  # not at start-up

    form = form_of(context)  # before what takes long to load: a wrong word is refused at once
    backends = backends_of(context)
    if isinstance(form, OperationForm):
        form.require_target(backends)
    from tuner.cli.tuned import tune_form  # takes long to load

    context.exit(tune_form(form, backends))
