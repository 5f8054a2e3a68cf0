"""The command line: options, printing and exit codes. A command imports slow modules only when it runs."""

from tuner.cli.commands.audit import audit
from tuner.cli.commands.bundle import bundle
from tuner.cli.commands.catalogue import space, strategies, targets
from tuner.cli.commands.completion import completion
from tuner.cli.commands.dashboard import dashboard
from tuner.cli.commands.database import db
from tuner.cli.commands.diff import diff
from tuner.cli.commands.export import export
from tuner.cli.commands.fleet import fleet
from tuner.cli.commands.gate import gate
from tuner.cli.commands.history import explain, history, show
from tuner.cli.commands.library import library
from tuner.cli.commands.lower import lower
from tuner.cli.commands.measure import measure
from tuner.cli.commands.new_strategy import new_strategy
from tuner.cli.commands.portfolio import distill, portfolio
from tuner.cli.commands.ptx import ptx
from tuner.cli.commands.record_space import record_space
from tuner.cli.commands.report import report
from tuner.cli.commands.run import run
from tuner.cli.commands.runs import runs
from tuner.cli.commands.scripts import apply, check
from tuner.cli.commands.tune import tune
from tuner.cli.commands.verify_resume import verify_resume
from tuner.cli.main import main

__all__ = ["main"]

main.add_sections(
    (
        ("Tune", (tune, strategies, new_strategy, space, targets)),
        ("Ask", (history, runs, show, diff, explain, portfolio, report, dashboard)),
        ("Export", (export, distill, check, apply, library, audit, gate)),
        ("Programs", (run, lower, ptx)),
        ("Measure on other machines", (bundle, measure, fleet)),
        ("Database", (db, record_space, verify_resume)),
        ("Shell", (completion,)),
    )
)
