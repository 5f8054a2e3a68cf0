"""The command line: the table of its commands, each an entry point that is imported when it runs."""

from typing import Final

from tuner.cli.main import Sections, main

__all__ = ["main"]

COMMANDS: Final[Sections] = (
    (
        "Tune",
        {
            "tune": "tuner.cli.commands.tune:tune",
            "strategies": "tuner.cli.commands.catalogue:strategies",
            "new-strategy": "tuner.cli.commands.catalogue:new_strategy",
            "space": "tuner.cli.commands.catalogue:space",
            "targets": "tuner.cli.commands.catalogue:targets",
        },
    ),
    (
        "Ask",
        {
            "history": "tuner.cli.commands.history:history",
            "runs": "tuner.cli.commands.history:runs",
            "show": "tuner.cli.commands.history:show",
            "diff": "tuner.cli.commands.history:diff",
            "explain": "tuner.cli.commands.history:explain",
            "portfolio": "tuner.cli.commands.portfolio:portfolio",
            "report": "tuner.cli.commands.report:report",
            "dashboard": "tuner.cli.commands.report:dashboard",
        },
    ),
    (
        "Export",
        {
            "export": "tuner.cli.commands.export:export",
            "distill": "tuner.cli.commands.portfolio:distill",
            "check": "tuner.cli.commands.check:check",
            "apply": "tuner.cli.commands.check:apply",
            "library": "tuner.cli.commands.export:library",
            "audit": "tuner.cli.commands.gate:audit",
            "gate": "tuner.cli.commands.gate:gate",
        },
    ),
    (
        "Programs",
        {
            "run": "tuner.cli.commands.run:run",
            "lower": "tuner.cli.commands.run:lower",
            "ptx": "tuner.cli.commands.ptx:ptx",
        },
    ),
    (
        "Measure on other machines",
        {
            "bundle": "tuner.cli.commands.bundle:bundle",
            "measure": "tuner.cli.commands.bundle:measure",
            "fleet": "tuner.fleet.commands.fleet:fleet",
        },
    ),
    (
        "Database",
        {
            "db": "tuner.cli.commands.database:db",
            "record-space": "tuner.cli.commands.record_space:record_space",
            "verify-resume": "tuner.cli.commands.database:verify_resume",
        },
    ),
    (
        "Shell",
        {
            "completion": "tuner.cli.completion:completion",
        },
    ),
)

main.add_sections(COMMANDS)
