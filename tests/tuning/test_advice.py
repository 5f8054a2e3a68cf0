"""Advice names the command's own problem, target and threads."""

from dataclasses import replace

import pytest

from tuner.core.problem import Problem
from tuner.core.requests import nothing_matches, tune_command
from tuner.core.runs import DatabaseInfo, TaskQuery

PROBLEM = Problem("batch_matmul", (4, 8, 16), "f16", "nt", "bias_relu", "f16", 2)

BATCHES = (
    "tuner tune batch_matmul 2x4x8x16 --dtype f16 --layout nt --epilogue bias_relu --output-dtype f16 "
    "--threads 2 --target simulator:sm_90"
)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (TaskQuery(), "tuner tune matmul 512x512x512"),
        (TaskQuery(shape="8x8x8", dtype="f32", threads=1), "tuner tune matmul 8x8x8"),
        (TaskQuery.of(PROBLEM, target="simulator:sm_90", threads=2), BATCHES),
    ],
)
def test_what_is_usual_is_left_out(task: TaskQuery, options: str) -> None:
    assert tune_command(task) == options


def test_an_example_of_a_batch_has_four_sizes_and_the_strategy_is_named() -> None:
    command = tune_command(TaskQuery(operation="batch_matmul"), "my tiles")
    assert command == "tuner tune batch_matmul 8x512x512x512 --strategy 'my tiles'"


def test_nothing_found_is_tuned_or_asked_for_without_conditions() -> None:
    command = tune_command(TaskQuery(shape="8x8x8", dtype="f64"))
    begin = "no history yet in sqlite:///x.db\nhint: tuner tune matmul 8x8x8 --dtype f64"
    info = DatabaseInfo("sqlite:///x.db", "0001", runs=1, trials=2)
    assert nothing_matches(command, "run", replace(info, runs=0)) == begin
    assert (
        nothing_matches(command, "run", info) == "no run matches; 1 run without conditions\nhint: tuner runs"
    )
    assert nothing_matches(command, "trial", info).endswith(
        "2 trials without conditions\nhint: tuner history"
    )
