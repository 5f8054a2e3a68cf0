"""Every number of the page of results is computed from the results files."""

import re

import pytest

from benchmarks.ratios import F32_1_THREAD, coverage, ratios_in
from benchmarks.result_tables import TEXTS
from tests.docs.guide import ROOT
from tests.docs.test_readme import NUMBER, prose

PAGE = " ".join(prose((ROOT / "docs" / "concepts" / "results.md").read_text()).split())
VERSIONS = {"1.5", "2.13"}  # of Kernel Tuner, PyTorch


def computed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: str(text.__name__))
def test_the_page_has_what_the_files_give(text: object) -> None:
    assert callable(text)
    assert computed(text()) in PAGE, "run: python -m benchmarks.result_tables"


def test_the_page_has_no_other_number() -> None:
    rest = PAGE
    for text in TEXTS:
        rest = rest.replace(computed(text()), "")
    assert set(NUMBER.findall(rest)) <= VERSIONS


def test_the_interval_is_that_of_the_rounds() -> None:
    rounds = ratios_in(F32_1_THREAD)[0].rounds
    outside = (rounds + 1) // 4
    assert f"from the {outside}th to the {rounds + 1 - outside}th of the {rounds} ratios" in PAGE
    (percent,) = re.findall(r"with a probability below (\d+) %", PAGE)
    assert 1 - coverage(rounds) < int(percent) / 100
