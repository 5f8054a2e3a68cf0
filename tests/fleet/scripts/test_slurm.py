import ast
from pathlib import Path

import pytest

from tests.fleet.scripts.nodes import TELLS, URL, assert_is_bash, run_with
from tuner.core.errors import UsageError
from tuner.fleet.commands.node_scripts import NodeCommand, slurm_job

COMPILING = NodeCommand(URL + "?options=-c a", slots=16, certificates="/my certs")
HERE = '#!/bin/sh\n[ "$1" = --cpus-per-task=16 ] && shift && exec "$@"\n'  # in place of srun


def directives(job: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in job.splitlines() if line.startswith("#SBATCH ")]


def test_an_array_has_a_job_for_each_node_and_a_processor_for_each_candidate() -> None:
    found = directives(slurm_job(COMPILING, 4, 16, "01:00:00", ("--partition=short",)))
    assert {"--array=0-3", "--cpus-per-task=16", "--time=01:00:00", "--partition=short"} <= set(found)
    assert "--signal=TERM@120" in found
    assert not {"--exclusive", "--gres=gpu:1"} & set(found)


@pytest.mark.parametrize(("target", "is_asked_for"), [("cuda:sm_90", "--gres=gpu:1"), ("cpu", "--exclusive")])
def test_a_node_that_measures_has_its_device_alone(target: str, is_asked_for: str) -> None:
    found = directives(slurm_job(NodeCommand(URL, target, has_device=True), 1, 1, "01:00:00"))
    assert [text for text in found if text in ("--gres=gpu:1", "--exclusive")] == [is_asked_for]


def test_the_job_starts_the_command_with_its_environment(tmp_path: Path) -> None:
    job = slurm_job(COMPILING, 2, 16, "01:00:00")
    assert_is_bash(job)
    said = run_with(tmp_path, job, srun=HERE, tuner=TELLS)
    assert ast.literal_eval(said) == [list(COMPILING.words[1:]), dict(COMPILING.environment)]


def test_what_would_be_another_line_of_the_job_is_refused() -> None:
    with pytest.raises(UsageError, match=r"sbatch: found '--a\\nreboot', allowed a text of one line"):
        slurm_job(COMPILING, 1, 1, "01:00:00", ("--a\nreboot",))
    with pytest.raises(UsageError, match="sbatch: found '--time=1\\\\n2'"):
        slurm_job(COMPILING, 1, 1, "1\n2")
    with pytest.raises(UsageError, match="nodes: found 0"):
        slurm_job(COMPILING, 0, 1, "01:00:00")
    with pytest.raises(UsageError, match="cores: found 0"):
        slurm_job(COMPILING, 1, 0, "01:00:00")
