"""The picture of ratios is what its script draws from the results files, and fetches nothing."""

import re
from xml.etree import ElementTree

from benchmarks.ratio_picture import svg
from benchmarks.ratios import f32_pairs
from tests.docs.guide import ROOT

PICTURE = ROOT / "docs" / "concepts" / "ratios.svg"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_what_the_script_draws() -> None:
    assert PICTURE.read_text() == svg(), "run: python -m benchmarks.ratio_picture docs/concepts/ratios.svg"


def test_every_ratio_has_a_mark_and_an_interval() -> None:
    picture = ElementTree.fromstring(svg())
    titles = [title.text for title in picture.iter(f"{SVG}title")]
    for each in (ratio for pair in f32_pairs() for ratio in (pair.one, pair.two)):
        assert f"{each.shape}: {each.ratio:.3f}, {each.low:.3f} to {each.high:.3f}" in titles
    bars = [line for line in picture.iter(f"{SVG}line") if "bar" in line.attrib["class"].split()]
    circles = list(picture.iter(f"{SVG}circle"))
    assert len(bars) == len(circles)
    for bar, circle in zip(bars, circles, strict=True):
        low, middle, high = (float(bar.attrib["x1"]), float(circle.attrib["cx"]), float(bar.attrib["x2"]))
        assert low <= middle <= high


def test_a_disturbed_ratio_is_hollow_and_named() -> None:
    hollow = [pair.two.shape for pair in f32_pairs() if pair.is_disturbed]
    assert svg().count(' hollow"') == len(hollow)
    assert all(f"Hollow ({shape})" in svg() for shape in hollow)


def test_the_picture_has_both_themes_and_fetches_nothing() -> None:
    assert "prefers-color-scheme: dark" in svg()
    assert not re.search(r"(?:href|src)=|url\(|font-face", svg())
