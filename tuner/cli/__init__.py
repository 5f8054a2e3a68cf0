"""The command line: the table of its commands, each an entry point that is imported when it runs."""

from typing import Final

from tuner.cli.main import Entry, Sections, main

__all__ = ["main", "options"]  # what the fleet's commands share

# Section of the help -> its commands, by entry point: a module, within tuner.cli.commands unless it is named
# in full, and a function, whose name is the command's with _ for -.
SUMMARIES: Final = {
    "Tune": {
        "tune:tune": "Tunes one operation at one size, or each matmul of a program or file; every trial is "
        "stored.",
        "catalogue:strategies": "Lists the strategies of a search-space file: what each one supports, and "
        "its knobs.",
        "catalogue:new_strategy": "Writes three starter files of a custom strategy, which work: script "
        "template, search space, test.",
        "catalogue:space": "Prints how many configurations of a problem are feasible, and what rejects the "
        "others.",
        "catalogue:targets": "Lists the targets: whether each is available on this machine, and why or why "
        "not; shipped results.",
    },
    "Ask": {
        "history:history": "Lists past trials, or runs, filtered by problem, machine, strategy, status, run "
        "and date.",
        "show:show": "Shows what is stored about one trial, one run, or one campaign, with the program that "
        "it tuned.",
        "show:diff": "Compares two trials, or the best trials of two runs: knobs, time, text of each stage, "
        "instructions.",
        "show:explain": "Explains why a trial failed, or whether a configuration is feasible and which "
        "constraint rejects it.",
        "portfolio:portfolio": "Chooses the K configurations that serve the problems of a campaign with the "
        "least loss.",
        "report:report": "Writes a self-contained HTML page of the results: best trials, convergence, "
        "failures, ablation.",
        "report:dashboard": "Shows runs as Optuna studies in optuna-dashboard, until Ctrl-C; the stored runs "
        "do not change.",
    },
    "Export": {
        "export:export": "Writes the best transform script of a problem, or that of a trial, or what "
        "--format names.",
        "check:check": "Verifies an exported script, the best trials, or recorded kernels, and times them "
        "again.",
        "apply:apply": "Applies a transform script of any origin to a payload and prints the result; - is "
        "stdin.",
    },
    "Programs": {
        "run:run": "Compiles and runs an MLIR program of one or more operations; '-' reads the program from "
        "stdin.",
        "lower:lower": "Prints an MLIR program, or an operation with its script, after a step of its "
        "lowering; - is stdin.",
        "ptx:ptx": "Simulates a kernel of a PTX file; reports its instructions, shared-memory conflicts and "
        "races.",
    },
    "Measure on other machines": {
        "bundle:bundle": "Carries compiled candidates to a machine with a GPU, and the results back.",
        "bundle:measure": "Verifies and times candidates on the GPU here, the most promising first.",
        "tuner.fleet.commands.fleet:fleet": "Lets other machines compile and measure; all of them use the "
        "PostgreSQL database of the results.",
    },
    "Database": {
        "database:db": "Maintains the results database.",
    },
    "Shell": {
        "tuner.cli.completion:completion": "Prints the script with which a shell completes tuner's commands, "
        "options and their values."
    },
}


def _entry(entry_point: str, summary: str) -> Entry:
    module, _, function = entry_point.partition(":")
    module = module if module.startswith("tuner.") else f"tuner.cli.commands.{module}"
    return Entry(function.replace("_", "-"), f"{module}:{function}", summary)


COMMANDS: Final[Sections] = tuple(
    (title, tuple(_entry(*pair) for pair in commands.items())) for title, commands in SUMMARIES.items()
)

main.add_sections(COMMANDS)
