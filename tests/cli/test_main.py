import re

import click
import pytest
from click.testing import CliRunner, Result

from tuner.cli import main
from tuner.cli.main import Commands
from tuner.core.errors import TunerError, UsageError
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.version import __version__

COMMANDS = [
    *(
        "tune",
        "history",
        "show",
        "explain",
        "export",
        "check",
        "apply",
        "strategies",
        "space",
        "targets",
        "db",
    ),
    *("bundle", "measure", "ptx", "record-space", "verify-resume", "report", "run", "lower", "audit", "gate"),
    *("dashboard", "runs", "completion", "diff", "new-strategy", "fleet", "portfolio", "distill", "library"),
]
GROUPS = {
    "db": ("upgrade", "info", "merge", "prune", "backup"),
    "bundle": ("export", "import"),
    "library": ("merge",),
    "ptx": ("run",),
    "fleet": ("script ssh", "script slurm", "script kubernetes"),
}
LEAVES = [(name,) for name in COMMANDS if name not in GROUPS] + [
    (group, *name.split()) for group, names in GROUPS.items() for name in names
]


def raising(error: BaseException) -> Result:
    """Runs a group whose only command raises."""

    @click.group(cls=Commands)
    def group() -> None:
        pass

    @group.command()
    def work() -> None:
        raise error

    return CliRunner().invoke(group, ["work"])


def test_the_table_says_of_a_command_what_its_help_says() -> None:
    helps = {name: command.help or "" for name, command in main.all_commands().items()}
    firsts = {name: " ".join(text.split("\n\n")[0].split()) for name, text in helps.items()}
    assert {entry.name: entry.summary for _title, section in main.sections for entry in section} == firsts


def test_every_command_of_the_contract_is_there() -> None:
    assert set(main.all_commands()) == set(COMMANDS)


@pytest.mark.parametrize("options", LEAVES)
def test_every_command_has_help_with_an_example_and_json(options: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, [*options, "--help"])
    assert done.exit_code == 0
    assert re.search(rf"Examples?: tuner {' '.join(options)}\b", " ".join(done.output.split()))
    assert "--json" in done.output
    assert "--debug" in done.output


def test_help_lists_each_command_once_by_its_job_with_its_whole_summary() -> None:
    done = CliRunner().invoke(main, ["--help"], terminal_width=80)
    titles = re.findall(r"^(\w[\w ]*):$", done.output, re.MULTILINE)
    assert titles == [
        *("Options", "Tune", "Ask", "Export", "Programs", "Measure on other machines", "Database", "Shell")
    ]
    listed = re.findall(r"^  ([a-z][\w-]+)  +[A-Z]", done.output, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert "..." not in done.output.partition("Options:")[2]
    assert max(map(len, done.output.splitlines())) <= 80


def test_a_command_of_no_job_is_listed_too() -> None:
    @click.group(cls=Commands)
    def group() -> None:
        pass

    @group.command()
    def work() -> None:
        """Works."""

    assert "Commands:\n  work  Works.\n" in CliRunner().invoke(group, ["--help"]).output


def test_version_is_reported_with_the_fingerprint_of_each_compiler() -> None:
    done = CliRunner().invoke(main, ["--version"])
    version, compiler, code = done.output.splitlines()
    assert (done.exit_code, version) == (0, f"tuner {__version__}")
    assert compiler == f"compiler: {cpu_compiler().mlir}"
    assert re.fullmatch(r"code: cpu \w{12}, cuda \w{12}, simulator \w{12}", code)
    fingerprint = cpu_compiler().fingerprint
    assert fingerprint.endswith(f"pipeline:{code.split()[2].strip(',')}")


def test_no_command_shows_the_help_on_stderr() -> None:
    done = CliRunner().invoke(main, [])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "Usage: tuner" in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("shape: found 'x'"), 2, "error: shape: found 'x'\n"),
        (TunerError("worker did\nnot start"), 1, "error: worker did not start\n"),
        (click.BadParameter("no"), 2, "error: Invalid value: no\n"),
        (OSError(28, "No space left on device", "x.db"), 1, "error: x.db: No space left on device\n"),
        (RuntimeError("odd"), 1, "error: defect: RuntimeError: odd\nhint: --debug shows where\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
    ],
)
def test_an_error_is_one_line_and_a_code(error: BaseException, code: int, line: str) -> None:
    done = raising(error)
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", line)
