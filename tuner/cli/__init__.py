"""The command line: the table of its commands, each an entry point that is imported when it runs."""

from typing import Final

from tuner.cli.main import Entry, Sections, main

__all__ = ["main", "options"]  # what the fleet's commands share

COMMANDS: Final[Sections] = (
    (
        "Tune",
        (
            Entry(
                "tune",
                "tuner.cli.commands.tune:tune",
                "Tunes one operation at one size, or each matmul of a program or file; every trial is "
                "stored.",
            ),
            Entry(
                "strategies",
                "tuner.cli.commands.catalogue:strategies",
                "Lists the strategies of a search space file: what each one supports, and its knobs.",
            ),
            Entry(
                "new-strategy",
                "tuner.cli.commands.catalogue:new_strategy",
                "Writes three starter files of a custom strategy, which work: script template, search "
                "space, test.",
            ),
            Entry(
                "space",
                "tuner.cli.commands.catalogue:space",
                "Prints how many configurations of a problem are feasible, and what rejects the others.",
            ),
            Entry(
                "targets",
                "tuner.cli.commands.catalogue:targets",
                "Lists the targets: whether each is available on this machine, and why or why not.",
            ),
        ),
    ),
    (
        "Ask",
        (
            Entry(
                "history",
                "tuner.cli.commands.history:history",
                "Lists past trials, filtered by problem, machine, strategy, status, run and date.",
            ),
            Entry(
                "runs",
                "tuner.cli.commands.history:runs",
                "Lists the runs, the latest first, each with its best trial.",
            ),
            Entry(
                "show",
                "tuner.cli.commands.show:show",
                "Shows what is stored about one trial, one run, or one campaign, with the program "
                "that it tuned.",
            ),
            Entry(
                "diff",
                "tuner.cli.commands.show:diff",
                "Compares two trials, or the best trials of two runs: knobs, time, text of each "
                "stage, instructions.",
            ),
            Entry(
                "explain",
                "tuner.cli.commands.show:explain",
                "Explains why a trial failed, or whether a configuration is feasible and which "
                "constraint rejects it.",
            ),
            Entry(
                "portfolio",
                "tuner.cli.commands.portfolio:portfolio",
                "Chooses the K configurations that serve the problems of a campaign with the least loss.",
            ),
            Entry(
                "report",
                "tuner.cli.commands.report:report",
                "Writes a self-contained HTML page of the results: best trials, convergence, "
                "failures, ablation.",
            ),
            Entry(
                "dashboard",
                "tuner.cli.commands.report:dashboard",
                "Shows runs as Optuna studies in optuna-dashboard, until Ctrl-C; the stored runs do "
                "not change.",
            ),
        ),
    ),
    (
        "Export",
        (
            Entry(
                "export",
                "tuner.cli.commands.export:export",
                "Writes the best transform script of a problem, or that of a trial, or what --format names.",
            ),
            Entry(
                "distill",
                "tuner.cli.commands.portfolio:distill",
                "Writes a rule file: the K configurations of a campaign, and their times on its problems.",
            ),
            Entry(
                "check",
                "tuner.cli.commands.check:check",
                "Verifies an exported script and times it again; one without a recorded time is "
                "verified only.",
            ),
            Entry(
                "apply",
                "tuner.cli.commands.check:apply",
                "Applies a transform script of any origin to a payload and prints the result; - is stdin.",
            ),
            Entry(
                "library",
                "tuner.cli.commands.export:library",
                "Works on libraries that 'tuner export --format library' wrote.",
            ),
            Entry(
                "audit",
                "tuner.cli.commands.gate:audit",
                "Recompiles the best trials of this machine after an upgrade; verifies and times "
                "changed code again.",
            ),
            Entry(
                "gate",
                "tuner.cli.commands.gate:gate",
                "Compiles recorded kernels again and times them interleaved with their recorded code, "
                "for CI.",
            ),
        ),
    ),
    (
        "Programs",
        (
            Entry(
                "run",
                "tuner.cli.commands.run:run",
                "Compiles and runs an MLIR program of one or more operations; '-' reads the program "
                "from stdin.",
            ),
            Entry(
                "lower",
                "tuner.cli.commands.run:lower",
                "Prints an MLIR program after one step of its lowering for a GPU; '-' reads the "
                "program from stdin.",
            ),
            Entry("ptx", "tuner.cli.commands.ptx:ptx", "Runs and checks PTX files without a GPU."),
        ),
    ),
    (
        "Measure on other machines",
        (
            Entry(
                "bundle",
                "tuner.cli.commands.bundle:bundle",
                "Carries compiled candidates to a machine with a GPU, and the results back.",
            ),
            Entry(
                "measure",
                "tuner.cli.commands.bundle:measure",
                "Verifies and times candidates on the GPU here, the most promising first.",
            ),
            Entry(
                "fleet",
                "tuner.fleet.commands.fleet:fleet",
                "Lets other machines compile and measure; all of them use the PostgreSQL database of "
                "the results.",
            ),
        ),
    ),
    (
        "Database",
        (
            Entry("db", "tuner.cli.commands.database:db", "Maintains the results database."),
            Entry(
                "record-space",
                "tuner.cli.commands.record_space:record_space",
                "Measures every preferred configuration of a problem, and writes the results as T4 "
                "for replays.",
            ),
            Entry(
                "verify-resume",
                "tuner.cli.commands.database:verify_resume",
                "Checks that a run killed by kill -9 resumes to the trials of an uninterrupted run.",
            ),
        ),
    ),
    (
        "Shell",
        (
            Entry(
                "completion",
                "tuner.cli.completion:completion",
                "Prints the script with which a shell completes tuner's commands, options and their values.",
            ),
        ),
    ),
)

main.add_sections(COMMANDS)
