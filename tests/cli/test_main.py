import contextlib
import fcntl
import json
import math
import os
import pty
import re
import signal
import struct
import sys
import termios
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from docs.generators.commands import all_commands
from tests.cli import command_lines
from tests.cli.conftest import Tuner, require_fields
from tests.core.test_serialization import ENCODED, FORMS, SECRET
from tests.db.conftest import empty_schema
from tests.db.test_campaigns import RESULT, begin_campaign
from tests.tuning import fakes
from tuner.cli import main
from tuner.cli.commands.dashboard import HOST, listening, serve
from tuner.cli.commands.report import report
from tuner.cli.main import (
    HELP_COLUMNS,
    MISUSED,
    USUAL_COLUMNS,
    Commands,
    _reported,
    example_lines,
    screen_columns,
)
from tuner.cli.options import parse_candidate, parse_share
from tuner.cli.session import ended_by_signals
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.matmul import Matmul
from tuner.core.reliability import unreliable
from tuner.db.store import Store
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.models.documents import run_document
from tuner.models.program_times import KernelTime, ProgramTimes
from tuner.models.report import Comparison, ProgramReport
from tuner.models.request import ProgramRequest
from tuner.targets.registry import real_backends
from tuner.tuning.events import Interruption
from tuner.version import __version__

WITHOUT_JSON = {("fleet", name) for name in ("up", "worker", "drain", "cancel", "demo")}


def test_the_table_says_of_each_command_what_its_help_says() -> None:
    helps = {name: command.help or "" for name, command in main.all_commands().items()}
    firsts = {name: " ".join(text.split("\n\n")[0].split()) for name, text in helps.items()}
    assert {entry.name: entry.summary for _title, section in main.sections for entry in section} == firsts


def test_help_lists_each_command_once_by_its_job_with_its_whole_summary() -> None:
    done = CliRunner().invoke(main, ["--help"], terminal_width=80)
    titles = re.findall(r"^(\w[\w ]*):$", done.output, re.MULTILINE)
    assert titles[:5] == ["Options", "Tune", "Ask", "Export", "Programs"]
    assert titles[5:] == ["Measure on other machines", "Database", "Shell"]
    listed = re.findall(r"^  ([a-z][\w-]+)  +[A-Z]", done.output, re.MULTILINE)
    assert sorted(listed) == sorted(main.all_commands())
    assert "..." not in done.output.partition("Options:")[2]
    assert max(map(len, done.output.splitlines())) <= 80


def test_no_command_shows_the_help_and_version_the_fingerprint_of_each_compiler() -> None:
    done = CliRunner().invoke(main, [])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Usage: tuner" in done.stderr
    done = CliRunner().invoke(main, ["--version"])
    version, compiler, code = done.output.splitlines()
    assert (done.exit_code, version) == (0, f"tuner {__version__}")
    assert compiler == f"compiler: {cpu_compiler().mlir}"
    assert re.fullmatch(r"code: cpu \w{12}, cuda \w{12}, simulator \w{12}", code)
    assert cpu_compiler().fingerprint.endswith(f"pipeline:{code.split()[2].strip(',')}")


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
    @click.group(cls=Commands)
    def group() -> None:
        pass

    @group.command()
    def work() -> None:
        raise error

    done = CliRunner().invoke(group, ["work"])
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", line)


def test_every_command_line_ends_in_a_result_or_one_clear_line() -> None:
    """``python -m tests.cli.command_lines --count 2000`` runs more lines."""
    assert list(command_lines.complaints(120, seed=1)) == []


def test_a_line_with_a_defect_or_without_json_is_found(tuner: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ("history", "history --status odd", "history --json"):
        assert command_lines.complaint((options,), tuner) == ""
    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", lambda *_, **__: "none")
        assert "--json printed" in command_lines.complaint(("history", "--runs", "--json"), tuner)
    monkeypatch.setattr("tuner.cli.commands.history.page_of_trials", lambda *_: 1 / 0)
    assert "defect: ZeroDivisionError" in command_lines.complaint(("history",), tuner)


# No command prints a password of its database's address, or writes one to a file.
# Words with which a command comes as far as its database:
TYPED = (
    *("tune matmul 8x8x8 --trials 3", "space matmul 8x8x8", "show 1", "diff 1 2", "explain 1", "cancel 1"),
    *("export matmul 8x8x8", "merge none.db", "backup copy.db", "drain node"),
    *("worker --compile 1", "ssh host --compile 1", "slurm --compile 1", "import none.jsonl"),
    *("kubernetes --compile 1 --image tuner", "check --record 1 gate.json"),
)
WORDS = {name: tuple(words) for name, *words in map(str.split, TYPED)}
DATABASE_SECRETS_COMMANDS = tuple(
    (*names[1:], *WORDS.get(names[-1], ()))
    for names, command in all_commands()
    if names[-1] != "dashboard" and any(each.name == "database" for each in command.params)
)


def require_silent(tuner: Tuner, *options: str) -> None:
    """Runs a command; nothing of it, nor of a file in its folder, may hold the secret."""
    done = tuner(*options)
    for said in (done.out, done.err):
        assert SECRET not in said, options
        assert ENCODED not in said, options
    for file in tuner.database.parent.rglob("*"):
        assert SECRET not in file.name, options
        assert file.is_dir() or SECRET.encode() not in file.read_bytes(), options


def test_all_commands_with_a_database_are_looked_at() -> None:
    words = {word for options in DATABASE_SECRETS_COMMANDS for word in options}
    assert {"tune", "history", "report", "export", "merge", "worker"} <= words
    assert set(WORDS) <= {names[-1] for names, _ in all_commands()}  # none that is gone


@pytest.mark.parametrize("form", FORMS)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(
    tuner: Tuner, here: Path, form: str
) -> None:
    nowhere = form.replace("@h", "@").replace("//h", "//") if "postgresql://" in form else form
    address = nowhere.format(SECRET).replace("host=h", "host=/none")
    if address.startswith("postgresql://"):
        address += f"{'&' if '?' in address else '?'}host=/none"
    for command in ("db info", "db upgrade --debug", "fleet status --debug"):
        require_silent(tuner, command, "--db", address)
    assert tuner("db upgrade --db", address).code == 2
    require_silent(tuner, "db merge", address, "--debug")
    assert {path.name for path in here.iterdir()} <= {"results.db", "results.db-wal", "results.db-shm"}


@pytest.mark.parametrize("options", DATABASE_SECRETS_COMMANDS, ids=" ".join)
def test_no_command_prints_the_password_of_a_server_that_does_not_answer(
    tuner: Tuner, here: Path, options: tuple[str, ...]
) -> None:
    url = f"postgresql://u:{SECRET}@/d?host=/none&sslpassword={ENCODED}"
    for address in (url, f"postgresql//u:{SECRET}@h/d"):
        require_silent(tuner, *options, "--db", address, "--debug")
        tuner.url = address
        require_silent(tuner, *options)


@pytest.mark.slow
@pytest.mark.postgres
def test_no_command_prints_the_password_of_a_server_that_answers(
    tuner: Tuner, here: Path, postgres_server: str
) -> None:
    address = f"{empty_schema(postgres_server)}&password={ENCODED}".replace("tuner@", f"tuner:{SECRET}@")
    tuner.done("tune matmul 8x8x8 --trials 3 --db", address)
    for options in DATABASE_SECRETS_COMMANDS:
        if options[0] != "fleet" and "--baseline" not in options:
            require_silent(tuner, *options, "--db", address)
    tuner.done("history --runs --json --db", address)
    assert "***" in tuner.done("db info --db", address).out
    require_silent(tuner, "db merge", address)


def help_of(options: tuple[str, ...]) -> str:
    """Returns what a command's ``--help`` prints in a terminal."""
    done = CliRunner().invoke(main, [*options, "--help"], terminal_width=HELP_COLUMNS)
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("options", [names[1:] for names, _ in all_commands()], ids=" ".join)
def test_help_fits_a_terminal_with_whole_summaries_or_an_example_and_json(options: tuple[str, ...]) -> None:
    text = help_of(options)
    assert max(map(len, text.splitlines())) <= HELP_COLUMNS
    assert "..." not in text.partition("Commands:")[2]
    if options and "\nCommands:" not in text:
        assert re.search(rf"Examples?: tuner {' '.join(options)}\b", " ".join(text.split()))
        assert "--debug" in text
        assert "--json" in text or options in WITHOUT_JSON


def test_examples_are_lines_to_copy() -> None:
    for examples, lines in (
        ("tuner show 42", ["Example: tuner show 42"]),
        ("tuner show 42 --run 3", ["Example:", "  tuner show 42 --run 3"]),
        ("tuner show 42,\n or tuner show run:3", ["Examples:", "  tuner show 42", "  tuner show run:3"]),
        ("tuner history --limit 10 --best", ["Example:", "  tuner history --limit 10 \\", "      --best"]),
        ("tuner explain 'a(b=1, c=2)' -x", ["Example:", "  tuner explain \\", "      'a(b=1, c=2)' -x"]),
    ):
        assert example_lines(examples, 29) == lines


# What commands print on a terminal of 80 columns.

COLUMNS = 80
ASKED = (
    *("history --runs", "history", "show 1", "show run:1", "show run:1 --ablation", "diff 1 2", "explain 1"),
    *(
        "check --best",
        "check --baseline gate.json",
        "space matmul 8x8x8",
        "strategies",
        "targets",
        "diff run:1 2",
    ),
    "show campaign:1",
    *("explain matmul 8x8x8 fake(x=1)", "explain matmul 8x8x8 fake(x=1,comment=a)"),
)


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[list[bytes]]:
    """Makes stdout a terminal so wide; what it shows is in the list when the block has ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # Linux's word for the end: the last writer has closed
            while chunk := os.read(ours, 1 << 16):
                shown.append(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "w") as file, contextlib.redirect_stdout(file):
        yield shown
    reader.join()
    os.close(ours)


def test_long_errors_are_wrapped_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = UsageError(f"shape: {'found a word ' * 12}", f"tuner tune {'matmul ' * 12}")
    assert _reported(error, ()) == MISUSED
    assert [len(line) > 80 for line in capsys.readouterr().err.splitlines()] == [True, True]
    monkeypatch.setitem(
        _reported.__globals__, "columns_of", lambda stream: 80 if stream is sys.stderr else None
    )
    _reported(error, ())
    *lines, hint = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == f"error: {error.message}".strip()
    assert hint.startswith("hint: tuner tune matmul matmul")  # a command stays one line, to be copied


def test_a_page_is_not_written_to_a_terminal(tmp_path: Path) -> None:
    with (
        terminal(80) as shown,
        pytest.raises(UsageError, match="report: refusing to write HTML to a terminal"),
    ):
        report.main(["--db", str(tmp_path / "results.db")], standalone_mode=False)
    assert shown == []


def test_a_terminal_reports_its_width_and_a_pipe_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert screen_columns() is None
    for columns, found in ((80, 80), (133, 133), (0, USUAL_COLUMNS)):
        with terminal(columns):
            assert screen_columns() == found


def test_every_table_fits_a_terminal_of_80_columns(
    tuned: Tuner, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned.done("tune matmul 16x8x8 --trials 1 --threads 2")
    tuned.done("check --record best --baseline gate.json")
    with Store.open(str(tuned.database)) as store:
        disturbed = replace(RESULT, left_out=("g1 " * 40,), reliability=unreliable("load " * 40))
        store.set_program_result(begin_campaign(store), disturbed)
    monkeypatch.setenv("TUNER_DB", str(tuned.database))
    with terminal(COLUMNS) as shown:
        for asked in ASKED:
            with pytest.raises(SystemExit, match=r"^0$"):
                main(asked.split(), obj=fakes.backends())
    lines = b"".join(shown).decode().splitlines()
    assert [line for line in lines if len(line) > COLUMNS and "tuner " not in line] == []
    assert "(columns hidden: failed, GFLOP/s, begun; widen the terminal, or --json)" in lines
    assert len(tuned("history").out.splitlines()[0]) > COLUMNS  # to a pipe


def test_what_a_program_asks_of_a_device_fits_it_too(tuned: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    call = f"launch @multiply, grid 4 x 4 x 1, block 128 x 1 x 1{', argument' * 9}"
    report = ProgramReport("main", (), ("64x64xf32",), (), 2, trace=(call,), is_simulated=True)
    monkeypatch.setattr("tuner.models.commands.ran.run_in_child", lambda *_: report)
    payload = tuned.database.with_name("payload.mlir")
    payload.write_text("module {}")
    with terminal(COLUMNS) as shown, pytest.raises(SystemExit, match=r"^0$"):
        main(["run", str(payload), "--target", "simulator"], obj=real_backends())
    lines = b"".join(shown).decode().splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert " ".join(" ".join(lines).split()).startswith(f"call {call} ran @main on simulator:sm_90, ")


# What commands share: arguments, a server for this machine, documents of programs.


def test_shares_are_parsed_and_what_is_none_is_refused() -> None:
    for text, share in (("5%", 0.05), ("0.05", 0.05), ("0%", 0.0), ("150%", 1.5)):
        assert parse_share(text) == pytest.approx(share)
    for text in ("", "%", "-5%", "five"):
        with pytest.raises(UsageError, match=r"max-slowdown: found .*, allowed a percentage such as 5%"):
            parse_share(text)


def test_a_candidate_reads_back_from_its_text_and_what_is_none_is_refused() -> None:
    candidate = Candidate.of("fake", {"x": 4, "order": "ji", "shift": -1})
    assert parse_candidate(candidate.text) == candidate
    assert parse_candidate("fake()") == Candidate.of("fake", {})
    for text in ("", "fake", "fake(x)", "fake(=1)", "fake(x=1", "fake x=1"):
        with pytest.raises(UsageError, match=r"candidate: found .*, allowed 'STRATEGY"):
            parse_candidate(text)


def greet(_environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"here"]


def test_it_answers_this_machine_until_interrupted(capfd: pytest.CaptureFixture[str]) -> None:
    before = set(threading.enumerate())
    with listening(0, greet) as server:
        assert server.server_address[0] == HOST
        results: list[bytes] = []

        def ask_and_interrupt() -> None:
            with urllib.request.urlopen(f"http://{HOST}:{server.server_port}/", timeout=120) as selected:
                results.append(selected.read())
            os.kill(os.getpid(), signal.SIGINT)

        asking = threading.Thread(target=ask_and_interrupt)
        asking.start()
        serve(server)
        asking.join()
        assert set(threading.enumerate()) <= before
    assert results == [b"here"]
    assert capfd.readouterr() == ("", "")


REQUEST = ProgramRequest("module {}", TargetName("cuda", "sm_90"), is_compared=True)
REPORT = ProgramReport("main", ("2x?xf32", "index"), ("2x3xf32",), (Matmul(8, 8, 8),), 2)
COMPARED = replace(REPORT, reference="interpreted")


def test_a_run_is_reported_as_json_with_times_where_a_device_ran_it() -> None:
    found = run_document(REQUEST, replace(COMPARED, comparisons=(Comparison("result 0", 1e-7, 1e-6),)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    compared = {"name": "result 0", "equal": True, "error": 1e-7, "tolerance": 1e-6, "blind": False}
    require_fields(found, comparisons=[compared], times=None, results=["2x3xf32"], streams=2, right=True)
    require_fields(found, arguments=["2x?xf32", "index"], problems=["matmul 8x8x8 f32 nn none"])
    kernels = (KernelTime("a", 0.0, 1.0), KernelTime("b", 1.0, 2.0))
    found = run_document(REQUEST, replace(REPORT, times=ProgramTimes(3.0, kernels, 2)))
    times = {"call_s": 3.0, "kernel_s": 2.0, "overlap": 1.0, "serialized": True, "processes": 1}
    assert found["times"] == {**times, "interval_s": None, "reliability": "unknown: it was not recorded"}


def test_a_report_or_a_number_that_is_missing_makes_it_wrong_and_what_was_not_asked_for_is_null() -> None:
    assert not run_document(REQUEST, replace(REPORT, defects=("race: ...",)))["right"]
    found = run_document(REQUEST, replace(COMPARED, comparisons=(Comparison("result 0", math.inf, 1e-6),)))
    assert (found["comparisons"][0]["error"], found["right"]) == (None, False)
    found = run_document(replace(REQUEST, is_compared=False), REPORT)
    assert (found["comparisons"], found["trace"]) == (None, None)


def test_handlers_are_of_the_main_thread_alone_and_what_they_were_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with ended_by_signals(Interruption()):
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    seen = []

    def work() -> None:
        with ended_by_signals(Interruption()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("compare 1 2", "tuner diff A B"), ("runs", "tuner history --runs"), ("tun", "did you mean tune?")],
)
def test_a_name_of_another_tool_is_answered_by_the_command_for_it(
    tuner: Tuner, typed: str, hint: str
) -> None:
    name = typed.partition(" ")[0]
    assert tuner.refused(typed) == f"error: there is no command '{name}'\nhint: {hint}\n"
