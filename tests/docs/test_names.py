"""What the pages name exists: files, modules, other pages. Pages about past decisions are read today."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.generators import PART
from tests import test_layers
from tests.cli.conftest import require
from tests.docs.guide import ROOT, blocks_of, sections
from tuner.core.errors import Stage
from tuner.models.run.exported import CODE, DOCUMENT

PAGES = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    ROOT / "examples" / "README.md",
)
FOLDERS = ("tuner", "tests", "benchmarks", "db", "docs", "strategies", "examples")

PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/(?:[\w./*-]*[\w*])?")
FILE_NAME = re.compile(r"`([\w-]+(?:\.[\w-]+)*\.(?:py|yaml|mlir|j2|csv|gz))`")
MODULE = re.compile(r"\b(?:tuner|benchmarks|tests)(?:\.[a-z_0-9]+)+")
PUBLIC = re.compile(r"tuner\.(?:torch\.|matmul\.)?\w+")  # an op, an attribute or a function of the Python API
MODULE_MARKS = ("`", "-m ")  # before a module; anything else with dots is an op, an attribute or a sentence
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def missing(page: Path, text: str) -> list[str]:
    made = {block.file for blocks in sections(text).values() for block in blocks}
    found = (
        *(path for path in PATH.findall(text) if not any(ROOT.glob(path.rstrip("/")))),
        *(name for name in FILE_NAME.findall(text) if not _is_anywhere(name)),
        *_missing_modules(text),
        *(link for link in LINK.findall(text) if not (page.parent / link).exists()),
    )
    return [name for name in found if name not in made]


def _is_anywhere(name: str) -> bool:
    return any(any((ROOT / folder).rglob(name)) for folder in FOLDERS) or (ROOT / name).exists()


def _missing_modules(text: str) -> Iterator[str]:
    for found in MODULE.finditer(text):
        name = found.group()
        path = ROOT / name.replace(".", "/")
        is_module = text[: found.start()].endswith(MODULE_MARKS) and not PUBLIC.fullmatch(name)
        if is_module and not (path.is_dir() or path.with_suffix(".py").exists()):
            yield name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    assert missing(page, PART.sub("", page.read_text())) == []  # what help and docstrings say has own tests


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see `tuner/mlir/passes/` for it", ["tuner/mlir/passes"]),
        ("in tuner/core/gpu.py, tests/ and benchmarks/results/cpu_matmul_*.json.", []),
        ("no benchmarks/results/nothing_*.json", ["benchmarks/results/nothing_*.json"]),
        ("`coherence.py`, `search_space.yaml` and `no_such_file.py`", ["no_such_file.py"]),
        ("`tuner.gpu.cost_model.occupancy`, `python -m benchmarks.gpu_check`", []),
        ("the attribute `tuner.device`, tuner.load_best, benchmarks.none", []),
        ("`tuner.launchable.limits` of it", ["tuner.launchable.limits"]),
        ("python -m benchmarks.none", ["benchmarks.none"]),
        ("[page](decisions/packages.md#names), [site](https://mlir.llvm.org)", []),
        ("[page](decisions/nothing.md)", ["decisions/nothing.md"]),
    ],
)
def test_a_name_of_nothing_is_found(text: str, found: list[str]) -> None:
    assert missing(ROOT / "docs" / "page.md", text) == found


# The page on troubleshooting quotes messages that are printed, and every stage of a failure.

PAGE = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text()
QUOTED = [line for block in blocks_of(PAGE) if block.language == "text" for line in block.text.splitlines()]


def test_quoted_messages_are_the_tuners_and_every_stage_has_its_row() -> None:
    sources = "\n".join(path.read_text() for path in Path(ROOT / "tuner").rglob("*.py"))
    assert len(QUOTED) >= 2
    assert [message for message in QUOTED if message not in sources] == []
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [stage.value for stage in Stage]


# The map for newcomers shows every package, on the layer where the table of imports puts it.

CONCEPTS = ROOT / "docs" / "concepts"
SVG = "{http://www.w3.org/2000/svg}"
# Package -> its layer, from 1 for the lowest; what users enter by (``tuner/__init__.py``) has no number.
LAYERS = {package: number for number, line in enumerate(test_layers.LAYERS[:-1], start=1) for package in line}


def test_the_page_and_the_picture_have_every_package_on_its_layer_a_lower_one_lower() -> None:
    text = (CONCEPTS / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `tuner/(\w+)(?:/|\.py)` \|", text, re.MULTILINE)
    assert {package: int(number) for number, package in rows} == LAYERS
    assert len(rows) == len(LAYERS)
    assert [int(number) for number, _ in rows] == sorted(LAYERS.values(), reverse=True)
    picture = (CONCEPTS / "architecture.svg").read_text()
    groups = ElementTree.fromstring(picture).iter(f"{SVG}g")
    ids = [(layer, layer.attrib["id"].partition("layer-")[2]) for layer in groups]
    layers = [(layer, int(number)) for layer, number in ids if number]
    drawn = {
        str(name.text): number
        for layer, number in layers
        for name in layer.iter(f"{SVG}text")
        if name.attrib["class"] == "package"
    }
    assert drawn == LAYERS
    tops = {number: float(box.attrib["y"]) for layer, number in layers for box in layer.iter(f"{SVG}rect")}
    assert sorted(tops, key=tops.__getitem__) == sorted(tops, reverse=True)
    steps = re.findall(r"^\| (\d+c?) \| [^`]", text, re.MULTILINE)
    trial, program = steps[:13], steps[13:]
    assert trial == [str(number) for number in range(1, 14)]
    numbers = re.findall(r'class="nt">(\w+)<', picture)
    assert sorted(numbers[:13]) == sorted(trial)
    assert set(numbers[13:]) == set(program)
    assert "(architecture.svg)" in text


ENDS_WITHIN = 3.0  # of a box's edge
ARROWS = re.findall(r'<polyline points="([^"]+)" class="arrow"', (CONCEPTS / "architecture.svg").read_text())


def edge_distance(box: Mapping[str, str], x: float, y: float) -> float:
    """Returns how far a point is from the edge of a box."""
    left = float(box["x"])
    top = float(box["y"])
    right = left + float(box["width"])
    bottom = top + float(box["height"])
    outside = max(left - x, x - right, top - y, y - bottom)
    return abs(outside)


def test_every_arrow_of_the_picture_begins_and_ends_at_an_edge_of_a_box() -> None:
    picture = ElementTree.fromstring((CONCEPTS / "architecture.svg").read_text())
    boxes = [box.attrib for box in picture.iter(f"{SVG}rect") if box.attrib.get("rx") == "5"]
    assert len(ARROWS) > 20
    loose = []
    for arrow in ARROWS:
        points = arrow.split()
        for point in (points[0], points[-1]):
            x, y = map(float, point.split(","))
            if min(edge_distance(box, x, y) for box in boxes) > ENDS_WITHIN:
                loose.append(arrow)
    assert loose == []


# The page on untrusted scripts names each kind of file whose code runs when it is given to tuner.

UNTRUSTED = " ".join((ROOT / "docs" / "guides" / "untrusted-scripts.md").read_text().split())


def test_each_kind_of_file_that_runs_code_is_named_as_an_exported_programs_object_file() -> None:
    kinds = (
        "transform script",
        "`tuner check --baseline`",
        "bundles",
        "exported programs",
        "databases",
        "rule files",
    )
    assert CODE.endswith(".o")
    in_process = "object file `tuner.load` and `tuner.torch.load` run in your process"
    require(UNTRUSTED, *kinds, in_process, f"hashes in `{DOCUMENT}` show damage")
