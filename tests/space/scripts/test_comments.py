"""Comments and lines of bound scripts, over candidates of every strategy: true, and within 120 columns."""

import re

import pytest

from tests.support.sampled_candidates import SampledCandidate, sampled
from tuner.space.file.shipped import STRATEGY_SCRIPT
from tuner.space.scripts.header import COLUMNS
from tuner.space.scripts.strategy import strategy_folder

COUNT = 10  # of each strategy
NAMES = sorted(file.parent.name for file in strategy_folder().glob(f"*/{STRATEGY_SCRIPT}"))
LARGE_SPACES = (
    "matmul_gpu_simt",
    "attention_cpu",
    "matmul_gpu_mma_sync",
)  # seconds each
PARAMETERS = [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE_SPACES)) for name in NAMES]
DIVISION = re.compile(r"(\d+) = (\d+) x (\d+) \+ (\d+)")
SECTION = re.compile(
    r"((?:^ {4,6}// .*\n)+)((?:^(?! {4,6}// ).*\n)*)", re.MULTILINE
)  # a comment, and the steps below it
UNBREAKABLE = re.compile(r'^ *loc\("[^"]*"\)$|^// panels: |^// packings: ')  # one string, or read by programs
# Words of a comment -> what the steps below it have
STEPS = {
    "are peeled": "transform.loop.peel",
    "is peeled": "transform.loop.peel",
    "by masks": "transform.structured.pad ",
    "What packs": r'linalg\.(copy|transpose)"',
    "epilogue go": r'linalg\.generic"',
    "into panels": "transform.structured.hoist_pad",
    "fills it up": '"tensor.pad"',
    "a square of": "transform.structured.split ",
    "both operands of a block are packed": "pack_a = 1",
    "A is read where it lies": "pack_a = 0",
    "zeroed tile by tile": "transform.structured.fuse ",
    "transposed in registers": "shuffle_16x16",
    "zeroes C": "transform.structured.fuse ",
    "in blocks of": "%block_m|tile_sizes",
    "per step along K": r"tile_sizes \[0, 0, |tuner.unroll_inner_loops",
    "K in blocks": "transform.structured.split ",
    "with its epilogue": r"linalg\.generic",
    "stay in registers over": "hoist_loop_invariant_subsets",
}
# Steps that concern no candidate without ... -> what such a script has
NEEDED = {
    r"memcpy_op": r'hoist_pad|loop\.unroll %vectors|linalg\.copy"',
    r"buffer_loop_hoisting": r"loop\.unroll %vectors|tuner\.\w+_block|multibuffer",
    r"linalg\.pad_vectorization": r"structured\.pad ",
    r"linalg\.decompose_pad": r"hoist_pad",
    r"vector\.transfer_permutation_patterns": r"transpose by \[1, 0\]|lanes_along_k|tile_reduction",
}


def sections(script: str) -> list[tuple[str, str]]:
    """Returns (comment, steps) of each comment inside of a sequence, its lines joined."""
    return [(re.sub(r"\n +//", "", comment), steps) for comment, steps in SECTION.findall(script)]


@pytest.fixture(scope="module", params=PARAMETERS)
def scripts(request: pytest.FixtureRequest) -> list[tuple[SampledCandidate, str]]:
    samples = sampled(COUNT, 1, request.param)
    return [
        (each, each.script(strategy_folder()).text)
        for each in samples
        if each.candidate.strategy == request.param
    ]


def test_what_comments_divide_is_right_and_of_the_problem(
    scripts: list[tuple[SampledCandidate, str]],
) -> None:
    for sample, script in scripts:
        for whole, times, part, rest in (map(int, found) for found in DIVISION.findall(script)):
            assert whole == times * part + rest, sample.text
            assert 0 < rest < part, sample.text
            assert whole <= max(sample.problem.sizes), sample.text


def test_a_comment_stands_with_the_steps_that_it_is_about(
    scripts: list[tuple[SampledCandidate, str]],
) -> None:
    for sample, script in scripts:
        for comment, steps in sections(script):
            assert steps.strip(), f"{sample.text}: {comment}"
            assert comment.splitlines()[0] == comment.splitlines()[0].rstrip(), f"{sample.text}: {comment}"
            for words, step in STEPS.items():
                assert words not in comment or re.search(step, steps), f"{sample.text}: {comment}"


def test_steps_that_some_candidates_need_are_with_those_alone(
    scripts: list[tuple[SampledCandidate, str]],
) -> None:
    for sample, script in scripts:
        if "matmul_cpu" in sample.candidate.strategy:
            for step, need in NEEDED.items():
                assert not re.search(step, script) or re.search(need, script), f"{sample.text}: {step}"


def test_no_line_has_more_than_120_columns_where_it_can_be_broken(
    scripts: list[tuple[SampledCandidate, str]],
) -> None:
    for sample, script in scripts:
        long = [line for line in script.splitlines() if len(line) > COLUMNS and not UNBREAKABLE.search(line)]
        assert long == [], sample.text
