"""The command line: the table of the base's commands, each imported when it runs.

Extensions add commands by entry points.
"""

from typing import Final

from tuner.cli.main import CommandTable, main

__all__ = [
    "forms",
    "main",
    "operations",
    "options",
    "session",
    "tune_forms",
]  # what commands of extensions share

# Section of the help -> its commands, by entry point: a module and a function, whose name is the command's
# with _ for -. Extensions have such tables as entry points of the group tuner.commands.
SUMMARIES: Final[CommandTable] = {
    "Tune": {
        "tuner.cli.commands.tune:tune": (
            "Tunes one operation at one size, or each matmul of a program or file; every trial is stored."
        ),
        "tuner.cli.commands.catalogue:strategies": (
            "Lists the strategies of a search-space file: what each one supports, and its knobs."
        ),
        "tuner.cli.commands.catalogue:new_strategy": (
            "Writes a custom strategy that works, a folder of three files: script template, search "
            "space, test."
        ),
        "tuner.cli.commands.catalogue:space": (
            "Prints how many configurations of a problem are feasible, and what rejects the others."
        ),
        "tuner.cli.commands.catalogue:targets": (
            "Lists the targets: whether each is available on this machine, and why or why not; shipped "
            "results."
        ),
    },
    "Ask": {
        "tuner.cli.commands.history:history": (
            "Lists past trials, or runs, filtered by problem, machine, strategy, status, run and date."
        ),
        "tuner.cli.commands.show:show": (
            "Shows what is stored about one trial, one run, or one campaign, with the program that it tuned."
        ),
        "tuner.cli.commands.show:diff": (
            "Compares two trials, or the best trials of two runs: knobs, time, text of each stage, "
            "instructions."
        ),
        "tuner.cli.commands.show:explain": (
            "Explains why a trial failed, or whether a configuration is feasible and which constraint "
            "rejects it."
        ),
        "tuner.cli.commands.portfolio:portfolio": (
            "Chooses the K configurations that serve the problems of a campaign with the least loss."
        ),
        "tuner.cli.commands.report:report": (
            "Writes a self-contained HTML page of the results: best trials, convergence, failures, ablation."
        ),
        "tuner.cli.commands.dashboard:dashboard": (
            "Shows runs as Optuna studies in optuna-dashboard, until Ctrl-C; the stored runs do not change."
        ),
    },
    "Export": {
        "tuner.cli.commands.check:check": (
            "Verifies an exported script, the best trials, or recorded kernels, and times them again."
        ),
    },
    "Programs": {},
    "Measure on other machines": {},
    "Database": {
        "tuner.cli.commands.database:db": "Maintains the results database.",
    },
    "Shell": {
        "tuner.cli.completion:completion": (
            "Prints the script with which a shell completes tuner's commands, options and their values."
        ),
    },
}

main.set_table(SUMMARIES, has_extensions=True)
