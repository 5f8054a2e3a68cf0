import contextlib
import fcntl
import itertools
import json
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.cli import command_lines
from tests.cli.conftest import Tuner
from tests.core.test_serialization import ENCODED, FORMS, SECRET
from tests.db.conftest import empty_schema
from tests.tuning import fakes
from tuner.cli import main
from tuner.cli.main import HELP_COLUMNS, USUAL_COLUMNS, Commands, example_lines, screen_columns
from tuner.core.errors import TunerError, UsageError
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.programs.request import ProgramReport
from tuner.targets.registry import real_backends
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


COUNT = 120  # of the lines; ``python -m tests.cli.command_lines --count 2000`` runs more


@pytest.mark.slow
def test_every_command_line_ends_in_a_result_or_one_clear_line() -> None:
    assert list(command_lines.complaints(COUNT, seed=1)) == []


def test_the_lines_of_a_seed_are_always_the_same_and_name_every_command_but_those_left_out() -> None:
    lines, again = (tuple(itertools.islice(command_lines.command_lines(7), 100)) for _ in range(2))
    assert lines == again
    assert {options[0] for options in lines} == set(main.all_commands()) - command_lines.LEFT_OUT


def test_a_line_that_ends_in_a_defect_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = Tuner(tmp_path / "results.db", fakes.backends())
    assert command_lines.complaint(("history",), tuner) == ""
    assert command_lines.complaint(("history", "--status", "odd"), tuner) == ""
    monkeypatch.setattr("tuner.results.past_runs.past_trials", lambda *_: 1 / 0)
    assert "defect: ZeroDivisionError" in command_lines.complaint(("history",), tuner)


def test_a_json_flag_that_prints_none_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = Tuner(tmp_path / "results.db", fakes.backends())
    assert command_lines.complaint(("history", "--json"), tuner) == ""
    monkeypatch.setattr(json, "dumps", lambda *_, **__: "none")
    assert "--json printed" in command_lines.complaint(("history", "--json"), tuner)


# No command prints a password of its database's address, or writes one to a file.

# Words with which a command comes as far as its database.
WORDS = {
    "tune": ("matmul", "8x8x8", "--trials", "3"),
    "space": ("matmul", "8x8x8"),
    "show": ("1",),
    "diff": ("1", "2"),
    "explain": ("1",),
    "export": ("matmul", "8x8x8"),
    "merge": ("none.db",),
    "backup": ("copy.db",),
    "suggest": ("matmul", "8x8x8"),
    "drain": ("node",),
    "cancel": ("1",),
    "worker": ("--compile", "1"),
    "ssh": ("host", "--compile", "1"),
    "slurm": ("--compile", "1"),
    "kubernetes": ("--compile", "1", "--image", "tuner"),
    "record-space": ("matmul", "8x8x8", "-o", "space.json"),
    "import": ("none.jsonl",),
    "gate": ("--record", "1", "gate.json"),
}


SERVES = {"dashboard"}


def commands(group: Commands, *options: str) -> Iterator[tuple[str, ...]]:
    """Yields the command lines of all commands that take --db."""
    for name, command in group.all_commands().items():
        if isinstance(command, Commands):
            yield from commands(command, *options, name)
        elif name not in SERVES and any(each.name == "database" for each in command.params):
            yield (*options, name, *WORDS.get(name, ()))


DATABASE_SECRETS_COMMANDS = tuple(commands(main))


def require_silent(tuner: Tuner, folder: Path, *options: str) -> None:
    """Runs a command; nothing of it may hold the secret."""
    done = tuner(*options)
    for said in (done.out, done.err):
        assert SECRET not in said, options
        assert ENCODED not in said, options
    for file in folder.rglob("*"):
        assert SECRET not in file.name, options
        assert file.is_dir() or SECRET.encode() not in file.read_bytes(), options


def test_all_commands_with_a_database_are_looked_at() -> None:
    assert {"tune", "history", "runs", "report", "export", "merge", "worker"} <= {
        text for options in DATABASE_SECRETS_COMMANDS for text in options
    }


@pytest.mark.parametrize("form", FORMS)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    nowhere = form.replace("@h", "@").replace("//h", "//") if "postgresql://" in form else form
    address = nowhere.format(SECRET).replace("host=h", "host=/none")
    if address.startswith("postgresql://"):
        address += f"{'&' if '?' in address else '?'}host=/none"
    for options in (("db", "info"), ("db", "upgrade", "--debug"), ("fleet", "status", "--debug")):
        require_silent(tuner, tmp_path, *options, "--db", address)
    assert tuner("db", "upgrade", "--db", address).code == 2
    require_silent(tuner, tmp_path, "db", "merge", address, "--debug")
    assert {path.name for path in tmp_path.iterdir()} <= {"results.db", "results.db-wal", "results.db-shm"}


@pytest.mark.parametrize("options", DATABASE_SECRETS_COMMANDS, ids=" ".join)
def test_no_command_prints_the_password_of_a_server_that_does_not_answer(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for address in (
        f"postgresql://u:{SECRET}@/d?host=/none&sslpassword={ENCODED}",
        f"postgresql//u:{SECRET}@h/d",
    ):
        require_silent(tuner, tmp_path, *options, "--db", address, "--debug")
        tuner.url = address
        require_silent(tuner, tmp_path, *options)


@pytest.mark.slow
@pytest.mark.postgres
def test_no_command_prints_the_password_of_a_server_that_answers(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_server: str
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"{empty_schema(postgres_server)}&password={ENCODED}".replace("tuner@", f"tuner:{SECRET}@")
    assert tuner("tune", "matmul", "8x8x8", "--trials", "3", "--db", address).code == 0
    for options in DATABASE_SECRETS_COMMANDS:
        if options[0] not in ("verify-resume", "fleet", "record-space", "gate"):
            require_silent(tuner, tmp_path, *options, "--db", address)
    for options in (("db", "info"), ("runs", "--json")):
        assert tuner(*options, "--db", address).code == 0
    assert "***" in tuner("db", "info", "--db", address).out
    require_silent(tuner, tmp_path, "db", "merge", address)


def _text(group: Commands = main, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield names
    for name, command in group.all_commands().items():
        yield from _text(command, (*names, name)) if isinstance(command, Commands) else ((*names, name),)


def help_of(options: tuple[str, ...]) -> str:
    """Returns what a command's ``--help`` prints in a terminal."""
    return CliRunner().invoke(main, [*options, "--help"], terminal_width=HELP_COLUMNS).output


@pytest.mark.parametrize("options", tuple(_text()), ids=" ".join)
def test_help_fits_a_terminal_and_reports_summaries_whole(options: tuple[str, ...]) -> None:
    text = help_of(options)
    assert max(map(len, text.splitlines())) <= HELP_COLUMNS
    assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("examples", "lines"),
    [
        ("tuner show 42", ["Example: tuner show 42"]),
        ("tuner show 42 --run 3", ["Example:", "  tuner show 42 --run 3"]),
        ("tuner show 42,\n or tuner show run:3", ["Examples:", "  tuner show 42", "  tuner show run:3"]),
        ("tuner history --limit 10 --best", ["Example:", "  tuner history --limit 10 \\", "      --best"]),
        ("tuner explain 'a(b=1, c=2)' -x", ["Example:", "  tuner explain \\", "      'a(b=1, c=2)' -x"]),
    ],
)
def test_examples_are_lines_to_copy(examples: str, lines: list[str]) -> None:
    assert example_lines(examples, 29) == lines


# What commands print on a terminal of 80 columns.

COLUMNS = 80


ASKED = (
    *("runs", "history", "show 1", "show run:1", "show run:1 --ablation", "diff 1 2", "diff run:1 2"),
    *("audit", "gate --baseline gate.json", "space matmul 8x8x8", "strategies", "targets", "explain 1"),
    *("explain matmul 8x8x8 fake(x=1)", "explain matmul 8x8x8 fake(x=1,comment=a)"),
)


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[list[bytes]]:
    """Makes stdout a terminal so wide; what it shows is in the list when the block has ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []
    reader = threading.Thread(target=lambda: shown.extend(chunks(ours)))
    reader.start()
    with os.fdopen(theirs, "w") as file, contextlib.redirect_stdout(file):
        yield shown
    reader.join()
    os.close(ours)


def chunks(descriptor: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # Linux's word for the end: the last writer has closed
        while chunk := os.read(descriptor, 1 << 16):
            yield chunk


@pytest.mark.parametrize(("columns", "found"), [(80, 80), (133, 133), (0, USUAL_COLUMNS)])
def test_a_terminal_reports_its_width(columns: int, found: int) -> None:
    with terminal(columns):
        assert screen_columns() == found


def test_a_pipe_has_no_width(capsys: pytest.CaptureFixture[str]) -> None:
    assert screen_columns() is None


def test_every_table_fits_a_terminal_of_80_columns(
    tuned: Tuner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder: Path = tuned.database.parent
    assert tuned("tune", "matmul", "16x8x8", "--trials", "1", "--threads", "2").code == 0
    assert tuned("gate", "--baseline", str(folder / "gate.json"), "--record", "best").code == 0
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TUNER_DB", str(tuned.database))
    with terminal(COLUMNS) as shown:
        for asked in ASKED:
            with pytest.raises(SystemExit, match=r"^0$"):
                main(asked.split(), obj=fakes.backends())
    lines = b"".join(shown).decode().splitlines()
    assert [line for line in lines if len(line) > COLUMNS and "tuner " not in line] == []
    assert "not shown for want of width: failed (--json prints all)" in lines
    assert len(tuned("history").out.splitlines()[0]) > COLUMNS  # to a pipe


def test_what_a_program_asks_of_a_device_fits_it_too(tuned: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    call = f"launch @multiply, grid 4 x 4 x 1, block 128 x 1 x 1{', argument' * 9}"
    report = ProgramReport("main", (), ("64x64xf32",), (), 2, trace=(call,), is_simulated=True)
    monkeypatch.setattr("tuner.cli.commands.run.run_in_child", lambda *_: report)
    payload = tuned.database.with_name("payload.mlir")
    payload.write_text("module {}")
    with terminal(COLUMNS) as shown, pytest.raises(SystemExit, match=r"^0$"):
        main(["run", str(payload), "--target", "simulator"], obj=real_backends())
    lines = b"".join(shown).decode().splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert " ".join(" ".join(lines).split()).startswith(f"call {call} ran @main on simulator:sm_90, ")
