"""The map for newcomers shows every package, on the layer where the table of imports puts it.

That its files exist is tested with those of all pages, in ``test_names.py``.
"""

import re
from xml.etree import ElementTree

from tests import test_layers
from tests.docs.guide import ROOT

CONCEPTS = ROOT / "docs" / "concepts"
SVG = "{http://www.w3.org/2000/svg}"
# Package -> its layer, from 1 for the lowest; what users enter by (``tuner/__init__.py``) has no number.
LAYERS = {package: number for number, line in enumerate(test_layers.LAYERS[:-1], start=1) for package in line}


def test_the_page_has_every_package_on_its_layer() -> None:
    text = (CONCEPTS / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `tuner/(\w+)(?:/|\.py)` \|", text, re.MULTILINE)
    assert {package: int(number) for number, package in rows} == LAYERS
    assert len(rows) == len(LAYERS)
    assert [int(number) for number, _ in rows] == sorted(LAYERS.values(), reverse=True)


def test_the_picture_has_every_package_on_its_layer() -> None:
    picture = ElementTree.parse(CONCEPTS / "architecture.svg")
    drawn = {
        str(name.text): int(layer.attrib["id"].removeprefix("layer-"))
        for layer in picture.iter(f"{SVG}g")
        for name in layer.iter(f"{SVG}text")
        if layer.attrib["id"].startswith("layer-") and name.attrib["class"] == "package"
    }
    assert drawn == LAYERS


def test_a_lower_layer_is_drawn_lower() -> None:
    picture = ElementTree.parse(CONCEPTS / "architecture.svg")
    tops = {
        int(layer.attrib["id"].removeprefix("layer-")): float(box.attrib["y"])
        for layer in picture.iter(f"{SVG}g")
        for box in layer.iter(f"{SVG}rect")
        if layer.attrib["id"].startswith("layer-")
    }
    assert sorted(tops, key=tops.__getitem__) == sorted(tops, reverse=True)


def test_every_step_of_the_picture_is_a_row_of_the_page() -> None:
    picture = (CONCEPTS / "architecture.svg").read_text()
    text = (CONCEPTS / "architecture.md").read_text()
    steps = re.findall(r"^\| (\d+c?) \| [^`]", text, re.MULTILINE)
    trial, program = steps[:13], steps[13:]
    assert trial == [str(number) for number in range(1, 14)]
    numbers = re.findall(r'class="nt">(\w+)<', picture)
    assert sorted(numbers[:13]) == sorted(trial)
    assert set(numbers[13:]) == set(program)
    assert "(architecture.svg)" in text


def test_the_decision_has_as_many_layers_as_the_table() -> None:
    decisions = ROOT / "docs" / "decisions" / "packages.md"
    names = {10: "Ten", 11: "Eleven", 12: "Twelve"}
    assert f"{names[max(LAYERS.values())]} layers of packages" in decisions.read_text()
