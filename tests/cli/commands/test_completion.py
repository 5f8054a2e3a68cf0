import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.conftest import Tuner
from tuner.cli import main


def completed(line: str) -> list[str]:
    """Returns what bash would be offered for the last word of a line."""
    words = line.split(" ")
    environment = {
        "_TUNER_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = CliRunner().invoke(main, [], env=environment)
    assert done.exit_code == 0
    return [offer.partition(",")[2] for offer in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("tuner hist", ["history"]),
        ("tuner db pr", ["prune"]),
        ("tuner history --form", ["--format"]),
        ("tuner history --format c", ["csv"]),
        ("tuner completion ", ["bash", "zsh", "fish"]),
        ("tuner nonsense", []),
    ],
)
def test_commands_flags_and_their_words_are_completed(line: str, offers: list[str]) -> None:
    assert completed(line) == offers


def test_a_shell_that_is_not_known_gets_nothing() -> None:
    done = CliRunner().invoke(main, [], env={"_TUNER_COMPLETE": "tcsh_complete"})
    assert (done.exit_code, done.stdout) == (1, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_asks_the_command_by_its_variable(tuner: Tuner, shell: str) -> None:
    done = tuner("completion", shell)
    assert done.code == 0
    assert f"_TUNER_COMPLETE={shell}_complete" in done.out
    document = tuner("completion", shell, "--json").json
    assert document["script"] == done.out
    assert f"tuner completion {shell}" in document["line"]


def test_another_shell_is_refused(tuner: Tuner) -> None:
    done = tuner("completion", "tcsh")
    assert done.code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="asks bash")
def test_bash_completes_with_the_script(tuner: Tuner) -> None:
    script = tuner("completion", "bash").out
    asking = (
        f'{script}\nCOMP_WORDS=(tuner explai); COMP_CWORD=1; _tuner_completion "$TUNER_COMMAND"\n'
        'echo "${COMPREPLY[@]}"'
    )
    wrapper = shutil.which("tuner", path=Path(sys.executable).parent)
    if wrapper is None:
        pytest.skip("the command is not installed beside the interpreter")
    done = subprocess.run(
        ["bash", "-c", asking],
        env={**os.environ, "TUNER_COMMAND": wrapper},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["explain"]
