"""The page about fleets shows what ``tuner fleet script`` prints."""

import itertools
import shlex

import pytest
from click.testing import CliRunner

from tests.docs.guide import ROOT, Block, blocks_of
from tuner.cli import main

COMMAND = "tuner fleet script "
BLOCKS = blocks_of((ROOT / "docs" / "guides" / "fleet.md").read_text())
SHOWN = [
    pytest.param(asked, shown, id=asked.text.split()[3])
    for asked, shown in itertools.pairwise(BLOCKS)
    if asked.text.startswith(COMMAND) and shown.language != "sh"
]


def test_there_is_one_of_each_kind() -> None:
    assert [parameters.id for parameters in SHOWN] == ["ssh", "slurm", "kubernetes"]


@pytest.mark.parametrize(("asked", "shown"), SHOWN)
def test_what_is_shown_is_what_is_printed(asked: Block, shown: Block) -> None:
    options = shlex.split(asked.text)
    done = CliRunner().invoke(main, options[1:])
    assert (done.exit_code, done.stdout) == (0, shown.text)
