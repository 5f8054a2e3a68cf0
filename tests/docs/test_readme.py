"""The README is short, begins with its limits, and types no number of a result by hand."""

import re

from benchmarks.model_tables import models_sentence
from benchmarks.result_tables import amx_sentence, cpu_summary, zen4_sentence
from tests.docs.guide import BLOCK, ROOT

README = (ROOT / "README.md").read_text()
MOST_WORDS = 900
IMAGE = re.compile(r"!\[[^]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
NUMBER = re.compile(r"\d+\.\d+")
VERSIONS = {"2.28", "3.11", "3.12", "3.13", "3.14", "2.0"}  # of glibc, Python, the licence
LIMITS = (  # what each of the first sentences must say
    ("matrix multiplication", "x86-64 CPUs"),
    ("NVIDIA", "verified as PTX in a simulator", "not yet been timed on a GPU"),
    ("Nothing is released",),
)


def prose(page: str) -> str:
    """Returns what a reader reads, tables and headings included: no code blocks, pictures and addresses."""
    return LINK.sub(r"\1", IMAGE.sub("", BLOCK.sub("", page)))


def options(page: str) -> list[str]:
    """Returns the words of the prose; what has neither letter nor digit is none."""
    return [name for name in prose(page).split() if re.search(r"\w", name)]


def test_words_are_those_that_a_reader_reads() -> None:
    page = "# One two\n![no](a.svg)\n\n| three | - |\n|---|---|\n\n```sh\nno\n```\n[four](five.md)\n"
    assert options(page) == ["One", "two", "three", "four"]


def test_the_readme_is_short() -> None:
    assert len(options(README)) <= MOST_WORDS


def test_the_first_sentences_hold_the_limits() -> None:
    first = " ".join(prose(README).partition("\n\n")[2].split())
    sentences = re.split(r"(?<=\.) (?=[A-Z`])", first)
    for sentence, wanted in zip(sentences, LIMITS, strict=False):
        assert all(phrase in sentence for phrase in wanted), sentence


def test_every_number_of_a_result_is_computed() -> None:
    text = " ".join(prose(README).split())
    for computed in (cpu_summary(), zen4_sentence(), amx_sentence(), models_sentence()):
        assert computed in text
        text = text.replace(computed, "")
    assert set(NUMBER.findall(text)) <= VERSIONS
