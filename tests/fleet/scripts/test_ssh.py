import ast
import time
from pathlib import Path

import pytest

from tests.fleet.scripts.nodes import TELLS, URL, assert_is_bash, run_with
from tuner.core.errors import UsageError
from tuner.fleet.commands.node_scripts import LOG, NodeCommand, ssh_lines

COMMAND = NodeCommand(URL, slots=16, certificates="/home/o'neil/my certs")
FAR = '#!/bin/sh\necho "$1 $2"\nexec sh -c "$3"\n'  # in place of ssh: the other machine is this one


def test_there_is_a_line_for_each_host_and_no_host_is_an_option() -> None:
    lines = ssh_lines(COMMAND, ("build1", "me@build2"))
    assert [line.split()[:3] for line in lines.splitlines()] == [
        ["ssh", "-n", "build1"],
        ["ssh", "-n", "me@build2"],
    ]
    assert_is_bash(lines)
    for text in ("-oProxyCommand=reboot", "", "a\nb"):
        with pytest.raises(UsageError, match="host: found"):
            ssh_lines(COMMAND, (text,))


def test_a_line_starts_the_command_with_its_environment_whatever_quotes_are_in_it(tmp_path: Path) -> None:
    said = run_with(tmp_path, ssh_lines(COMMAND, ("build 1",)), ssh=FAR, tuner=TELLS)
    assert said == "-n build 1\n"
    until_s = time.monotonic() + 120
    while not (tmp_path / LOG).read_text() and time.monotonic() < until_s:
        time.sleep(0.01)  # it runs beside us
    assert ast.literal_eval((tmp_path / LOG).read_text()) == [
        list(COMMAND.words[1:]),
        dict(COMMAND.environment),
    ]
