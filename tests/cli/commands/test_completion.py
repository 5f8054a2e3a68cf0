import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner

from tests.cli.conftest import Tuner
from tuner.cli import main
from tuner.core.dtypes import PLAIN_DTYPES
from tuner.core.epilogues import EPILOGUES
from tuner.core.gpu import CHIPS
from tuner.core.problem import LAYOUTS, OPERATIONS
from tuner.targets.registry import TARGETS


def completed(line: str) -> list[str]:
    words = line.split(" ")
    environment = {"_TUNER_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = CliRunner().invoke(main, [], env=environment)
    assert done.exit_code == 0
    return [offer.partition(",")[2] for offer in done.stdout.split()]


def test_commands_flags_and_their_words_are_completed() -> None:
    for line, offers in (
        *(("tuner hist", ["history"]), ("tuner db pr", ["prune"]), ("tuner nonsense", [])),
        *(("tuner history --form", ["--format"]), ("tuner history --format c", ["csv"])),
        ("tuner completion ", ["bash", "zsh", "fish"]),
    ):
        assert completed(line) == offers
    unknown = CliRunner().invoke(main, [], env={"_TUNER_COMPLETE": "tcsh_complete"})
    assert (unknown.exit_code, unknown.stdout) == (1, "")


LATEST = [str(trial) for trial in range(20, 0, -1)]


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("tune ", [*OPERATIONS]),
        ("history --op b", ["batch_matmul"]),
        ("tune matmul 8x8x8 --dtype ", [*PLAIN_DTYPES]),
        ("export --output-dtype bf", ["bf16"]),
        ("history --runs --layout ", [*LAYOUTS]),
        ("space --epilogue ", [*EPILOGUES]),
        ("tune --target ", ["auto", *TARGETS, "replay"]),
        ("history --target c", ["cpu", "cuda"]),
        ("tune --chip sm_9", [chip for chip in CHIPS if chip.startswith("sm_9")]),
        ("tune --sampler t", ["tpe"]),
        ("tune --sampler optuna:q", ["optuna:qmc"]),
        ("tune --strategy matmul_cpu_pac", ["matmul_cpu_packed"]),
        ("history --run ", ["1"]),
        ("report --run ", ["1"]),
        ("tune --resume ", ["1"]),
        ("export --trial ", LATEST),
        ("show 1", [*LATEST[1:11], "1"]),
        ("show run:", ["run:1"]),
        ("diff 2 1", [*LATEST[1:11], "1"]),
        ("explain 20", ["20"]),
        ("check --record ", LATEST),
        ("show --db none.db ", []),
        ("show --db pyproject.toml ", []),
        ("tune --strategy m --space none.yaml --strategy ", [""]),  # a file, as a path is taken too
        ("new-strategy ", []),
    ],
)
def test_words_are_offered_the_latest_first(
    tuned_database: Path, monkeypatch: pytest.MonkeyPatch, line: str, offers: list[str]
) -> None:
    monkeypatch.setenv("TUNER_DB", f"sqlite:///{tuned_database}")
    assert [item.value for item in offered(line)] == offers


def offered(line: str) -> list[CompletionItem]:
    *options, incomplete = line.split(" ")
    return ShellComplete(main, {}, "tuner", "_TUNER_COMPLETE").get_completions(options, incomplete)


def test_what_is_offered_says_what_it_is_and_moves_no_terminal(
    tuned_database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUNER_DB", str(tuned_database))
    assert [item.help for item in offered("show run:")] == ["matmul 8x8x8 f32 nn none, fake, done"]
    assert offered("show 2")[-1].help == "run 1: fake, measured"
    assert "register tile" in (offered("tune --strategy matmul_cpu_packed")[0].help or "")
    file = shutil.copy(tuned_database, tmp_path / "results.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("update trial set strategy = 'a' || char(27) || '[2J' || char(10) || 'b'")
    monkeypatch.setenv("TUNER_DB", str(file))
    assert offered("show 20")[0].help == "run 1: a\\x1b[2J b, measured"


def ran(command: list[str], **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)


def test_trials_are_offered_without_the_libraries_of_the_database(tuned_database: Path) -> None:
    code = (
        "import os, sys\nfrom tuner.cli import main\ntry:\n    main()\nexcept SystemExit:\n"
        "    print(sorted({'sqlalchemy', 'numpy', 'yaml'} & sys.modules.keys()), file=sys.stderr)"
    )
    variables = {"_TUNER_COMPLETE": "bash_complete", "COMP_WORDS": "tuner show ", "COMP_CWORD": "2"}
    done = ran([sys.executable, "-c", code], TUNER_DB=str(tuned_database), **variables)
    assert (done.stdout.split()[0], done.stderr) == ("plain,20", "[]\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_asks_the_command_by_its_variable(tuner: Tuner, shell: str) -> None:
    done = tuner.done("completion", shell)
    assert f"_TUNER_COMPLETE={shell}_complete" in done.out
    document = tuner("completion", shell, "--json").json
    assert document["script"] == done.out
    assert f"tuner completion {shell}" in document["line"]


@pytest.mark.drawn(2)
@pytest.mark.skipif(shutil.which("bash") is None, reason="asks bash")
@pytest.mark.parametrize(
    ("options", "offers"),
    [("explai", ["explain"]), ("export --trial 2", ["20", "2"]), ("tune --sampler en", ["ensemble"])],
)
def test_bash_completes_with_the_script(tuned: Tuner, options: str, offers: list[str]) -> None:
    script = tuned("completion bash").out
    asking = (
        f"{script}\nCOMP_WORDS=(tuner {options}); COMP_CWORD={len(options.split())}\n"
        '_tuner_completion "$TUNER_COMMAND"\necho "${COMPREPLY[@]}"'
    )
    wrapper = shutil.which("tuner", path=Path(sys.executable).parent)
    if wrapper is None:
        pytest.skip("the command is not installed beside the interpreter")
    done = ran(["bash", "-c", asking], TUNER_COMMAND=wrapper, TUNER_DB=str(tuned.database))
    assert done.stdout.split() == offers
