"""The map for newcomers shows every room, on the floor where the table of imports puts it.

That its files exist is tested with those of all pages, in ``test_names.py``.
"""

import re
from functools import cache
from xml.etree import ElementTree

from tests.docs.guide import ROOT
from tests.test_layers import PACKAGES, package_of

CONCEPTS = ROOT / "docs" / "concepts"
SVG = "{http://www.w3.org/2000/svg}"


@cache
def floor(storage: str) -> int:
    """Returns the number of rooms in the longest chain of imports below and with a room."""
    return 1 + max((floor(other.partition("/")[0]) for other in PACKAGES[storage]), default=0)


LAYERS = {storage: floor(storage) for storage in PACKAGES}


def test_the_page_has_every_package_on_its_layer() -> None:
    text = (CONCEPTS / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `tuner/(\w+)(?:/|\.py)` \|", text, re.MULTILINE)
    assert {package_of(storage): int(number) for number, storage in rows} == LAYERS
    assert len(rows) == len(LAYERS)
    assert [int(number) for number, _ in rows] == sorted(LAYERS.values(), reverse=True)


def test_the_picture_has_every_package_on_its_layer() -> None:
    picture = ElementTree.parse(CONCEPTS / "architecture.svg")
    drawn = {
        str(name.text): int(group.attrib["id"].removeprefix("floor-"))
        for group in picture.iter(f"{SVG}g")
        for name in group.iter(f"{SVG}text")
        if name.attrib["class"] == "room"
    }
    assert drawn == LAYERS


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


def test_the_decision_has_as_many_packages_and_layers_as_the_table() -> None:
    (decision,) = (ROOT / "docs" / "decisions").glob("0026-*.md")
    options = {8: "eight", 9: "nine", 10: "ten"}
    assert re.search(rf"{len(LAYERS)} \w+ on {options[max(LAYERS.values())]} \w+ ", decision.read_text())
