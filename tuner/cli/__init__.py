"""The command line: flags, printing and exit codes. Nothing heavy is imported before a command needs it."""

from tuner.cli.bundle import bundle
from tuner.cli.catalogue import space, strategies, targets
from tuner.cli.commands import main
from tuner.cli.database import db
from tuner.cli.export import export
from tuner.cli.history import explain, history, show
from tuner.cli.measure import measure
from tuner.cli.ptx import ptx
from tuner.cli.record_space import record_space
from tuner.cli.report import report
from tuner.cli.run import run
from tuner.cli.scripts import apply, check
from tuner.cli.tune import tune
from tuner.cli.verify_resume import verify_resume

__all__ = ["main"]

for _command in (
    tune,
    history,
    show,
    explain,
    export,
    check,
    apply,
    strategies,
    space,
    targets,
    db,
    bundle,
    measure,
    ptx,
    run,
    record_space,
    report,
    verify_resume,
):
    main.add_command(_command)
