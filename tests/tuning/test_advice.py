"""Advice names the command's own problem, target and threads."""

import pytest

from tuner.core.problem import Problem
from tuner.core.runs import TrialQuery
from tuner.tuning.advice import tune_command

PROBLEM = Problem("batch_matmul", (4, 8, 16), "f16", "nt", "bias_relu", "f16", 2)

BATCHES = (
    "tuner tune batch_matmul 2x4x8x16 --dtype f16 --layout nt --epilogue bias_relu --output f16 "
    "--threads 2 --target simulator:sm_90"
)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (TrialQuery(), "tuner tune matmul 512x512x512"),
        (TrialQuery(shape="8x8x8", dtype="f32", threads=1), "tuner tune matmul 8x8x8"),
        (
            TrialQuery.of(PROBLEM, target="simulator:sm_90", threads=2),
            BATCHES,
        ),
    ],
)
def test_what_is_usual_is_left_out(query: TrialQuery, words: str) -> None:
    assert tune_command(query) == words
