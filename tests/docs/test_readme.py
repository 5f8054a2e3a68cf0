"""The README is short, begins with its limits, and types no number of a result by hand."""

import json
import re
from xml.etree import ElementTree

from benchmarks import first_page
from benchmarks.model_tables import models_sentence, real_size_sentence
from benchmarks.race import pages
from benchmarks.race.picture import svg as race_svg
from benchmarks.race.race_file import stored_race
from benchmarks.ratio_picture import svg
from benchmarks.ratios import F32_1_THREAD, coverage, f32_pairs, ratios_in
from benchmarks.result_tables import TEXTS, gpu_sentences, library_sentence
from benchmarks.terminal_recording import STILL_FORMAT
from tests.cli.conftest import require
from tests.docs.guide import BLOCK, ROOT, blocks_of

README = (ROOT / "README.md").read_text()
MOST_WORDS = 900  # code included, as wc counts
MOST_WORDS_OF_PAGES = 45_000
IMAGE = re.compile(r"!\[[^]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
NUMBER = re.compile(r"\d+\.\d+")
VERSIONS = {"2.28", "3.11", "3.12", "3.13", "3.14", "2.0"}  # of glibc, Python, the licence
LIMITS = (  # what each of the first sentences must say
    ("matrix multiplication", "knobs", "MLIR transform script", "Optuna study", "with float64", "in SQL"),
    ("x86-64 CPUs",),
    *((sentence,) for sentence in gpu_sentences().split(". ")),
    ("Nothing is released",),
)


def prose(page: str) -> str:
    """Returns what a reader reads, tables and headings included: no code blocks, pictures and addresses."""
    return LINK.sub(r"\1", IMAGE.sub("", BLOCK.sub("", page)))


def test_the_readme_is_short_its_first_sentences_hold_the_limits_and_every_number_is_computed() -> None:
    assert len(README.split()) <= MOST_WORDS
    sentences = re.split(r"(?<=\.) (?=[A-Z`])", " ".join(prose(README).partition("\n\n")[2].split()))
    for sentence, wanted in zip(sentences, LIMITS, strict=False):
        assert all(phrase in sentence for phrase in wanted), sentence
    text = " ".join(prose(README).split())
    schedule = first_page.part(json.loads(first_page.FILE.read_text()))
    assert first_page.with_part(README, schedule) == README, "run: python -m benchmarks.first_page"
    raced = pages.part_of(README)
    generated = (library_sentence(), models_sentence(), real_size_sentence(), gpu_sentences())
    first_screen = README[: README.index("## Quick start")]
    assert first_screen.startswith("# tuner\n\nFor people who "), "the first words name the reader"
    assert library_sentence() in " ".join(first_screen.split())
    for computed in (*generated, prose(schedule), prose(raced)):
        words = " ".join(computed.split())
        assert words in text
        text = text.replace(words, "")
    assert set(NUMBER.findall(text)) <= VERSIONS


def test_the_pages_without_the_generated_reference_have_a_limit_of_words() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "reference"]
    words = sum(len(page.read_text().split()) for page in pages)
    assert words <= MOST_WORDS_OF_PAGES, "cut what a page says twice, or what guides nobody any more"


def test_commands_fit_a_terminal_of_80_columns() -> None:
    lines = [
        line for block in blocks_of(README) if block.language == "sh" for line in block.text.splitlines()
    ]
    assert [line for line in lines if len(line) > 80] == []


# Its picture shows what the commands of its quick start print.

PICTURE = (ROOT / "docs" / "first-run.svg").read_text()
WORDS = "".join(ElementTree.fromstring(PICTURE).itertext()).replace("\N{NO-BREAK SPACE}", " ")


def test_the_picture_is_of_the_quickstarts_commands_and_shows_the_lines_that_a_run_ends_with() -> None:
    quickstart = next(block for block in blocks_of(README) if block.language == "sh").text.splitlines()
    typed = [line.split(" #")[0].strip() for line in quickstart if line.startswith("tuner ")]
    assert (len(quickstart), len(typed)) == (6, 3)
    require(WORDS, *(f"$ {command}" for command in typed))
    assert README.index("## Quick start") < README.index("(docs/first-run.svg)") < README.index("## How")
    assert "font-face" not in PICTURE + STILL_FORMAT
    assert not re.search(r"(?:href|src)=|url\((?!#)", PICTURE)
    output = ROOT / "tuner" / "results" / "output"
    source = "".join((output / name).read_text() for name in ("run_result.py", "formatting.py"))
    for label in ("best", "time", "next"):
        assert re.search(rf"{label:<10}", WORDS), label
        assert f'"{label:<10}' in source, label


# Every number of the page of results is computed from the results files.

RESULTS_PAGE = (ROOT / "docs" / "concepts" / "results.md").read_text()
RESULTS = " ".join(prose(RESULTS_PAGE).split())
OTHER_VERSIONS = {"1.5", "2.13"}  # of Kernel Tuner, PyTorch


def test_the_page_has_what_the_files_give_no_other_number_and_the_interval_of_the_rounds() -> None:
    rest = RESULTS.replace(" ".join(prose(pages.part_of(RESULTS_PAGE)).split()), "")
    for text in TEXTS:
        computed = " ".join(text().split())
        assert computed in RESULTS, f"{text.__name__}: run: python -m benchmarks.result_tables"
        rest = rest.replace(computed, "")
    assert set(NUMBER.findall(rest)) <= OTHER_VERSIONS
    rounds = ratios_in(F32_1_THREAD)[0].rounds
    outside = (rounds + 1) // 4
    assert f"from the {outside}th to the {rounds + 1 - outside}th of the {rounds} ratios" in RESULTS
    (percent,) = re.findall(r"with a probability below (\d+) %", RESULTS)
    assert 1 - coverage(rounds) < int(percent) / 100


# The race of whole tuners is what its results file says, on both pages and in its picture.


def test_the_pages_have_what_the_race_gave_and_nothing_before_one_is_stored() -> None:
    race = stored_race()
    if race is None:
        assert pages.part_of(README) == pages.part_of(RESULTS_PAGE) == ""
        assert not pages.PICTURE.exists()
        return
    assert pages.part_of(README) == pages.readme_part(race), "run: python -m benchmarks.race.pages"
    assert pages.part_of(RESULTS_PAGE) == pages.results_part(race)
    assert pages.PICTURE.read_text() == race_svg(race)


# The picture of ratios is what its script draws from the results files, and fetches nothing.

RATIOS = ROOT / "docs" / "concepts" / "ratios.svg"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_what_the_script_draws_with_a_mark_and_an_interval_for_every_ratio() -> None:
    assert RATIOS.read_text() == svg(), "run: python -m benchmarks.ratio_picture docs/concepts/ratios.svg"
    assert "prefers-color-scheme: dark" in svg()
    assert "not measured" not in svg(), "the page says what was not measured, next to what was"
    assert not re.search(r"(?:href|src)=|url\(|font-face", svg())
    picture = ElementTree.fromstring(svg())
    titles = [title.text for title in picture.iter(f"{SVG}title")]
    for each in (ratio for pair in f32_pairs() for ratio in (pair.one, pair.two)):
        assert f"{each.shape}: {each.ratio:.3f}, {each.low:.3f} to {each.high:.3f}" in titles
    bars = [line.attrib for line in picture.iter(f"{SVG}line") if "bar" in line.attrib["class"].split()]
    for bar, circle in zip(bars, picture.iter(f"{SVG}circle"), strict=True):
        assert float(bar["x1"]) <= float(circle.attrib["cx"]) <= float(bar["x2"])
    hollow = [pair.two.shape for pair in f32_pairs() if pair.is_disturbed]
    assert svg().count(' hollow"') == len(hollow)
    assert all(f"Hollow ({shape})" in svg() for shape in hollow)
