"""The generated parts of the reference: whole, asked for by pages, and what runs agree with them."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import tuner
from docs.generators import GENERATORS, PART, with_generated_parts
from docs.generators.commands import all_commands, commands
from docs.generators.documents import PRINTED, command_documents, json_type, stored_documents
from docs.generators.navigation import with_menu
from docs.generators.page_list import page_list
from docs.generators.python_api import RETURNED, python_api
from docs.generators.search_space import search_space
from docs.generators.template_comments import documented_comments
from docs.generators.transform_ops import transform_ops
from tests.cli.conftest import Tuner
from tests.docs.guide import ROOT
from tuner.gpu.payload.scratch import COMMENT
from tuner.mlir.dialect import all_ops
from tuner.space.scripts.header import ScriptProvenance

DOCS = ROOT / "docs"
ATTRIBUTE = re.compile(r'\b(?:attribute|text|integer_list)\((?:self|op), "(\w+)"')
RUN_ONCE = {name: name for name in ("history", "history --runs", "strategies")} | {  # as listed -> as typed
    "tune": "tune matmul 64x64x64 --trials 4",
    "space": "space matmul 64x64x64",
    "show": "show 1",
    "show run:ID": "show run:1",
    "diff": "diff 1 2",
}


def section(text: str, title: str) -> str:
    return re.split(r"^## ", text.split(f"## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_pages_have_every_part_as_it_is_generated_today() -> None:
    texts = {page: page.read_text() for page in DOCS.rglob("*.md")}
    assert sorted(name for text in texts.values() for name in PART.findall(text)) == sorted(GENERATORS)
    changed = [page.name for page, text in texts.items() if with_generated_parts(text) != text]
    assert changed == [], "python -m docs.generators writes them anew"
    with pytest.raises(KeyError, match="nothing"):
        with_generated_parts("# Page\n\n<!-- generated: nothing -->\n<!-- end -->\n")


MOST_ENTRIES = 10  # at the top of the menu


def test_the_menu_has_ten_entries_at_its_top_and_every_page_once() -> None:
    entries = {}
    for page in DOCS.rglob("*.md"):
        name = str(page.relative_to(DOCS).with_suffix(""))
        text = with_menu(name, page.read_text(), DOCS)
        menus = re.findall(r"^```\{toctree\}\n:hidden:\n\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        entries[name] = [str(Path(name).parent / entry) for menu in menus for entry in menu.split()]
    assert 0 < len(entries["README"]) <= MOST_ENTRIES
    named = [entry for menu in entries.values() for entry in menu]
    assert sorted(named) == sorted(entries.keys() - {"README"})
    assert "(docs/README.md)" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_list_of_pages_for_programs_is_as_it_is_generated_today_and_has_every_page() -> None:
    text = (ROOT / "llms.txt").read_text()
    assert text == page_list(DOCS), "python -m docs.generators writes it anew"
    decisions = set(DOCS.glob("decisions/*.md"))
    listed = [ROOT / page for page in re.findall(r"\]\((.+?)\): \S", text)]
    assert sorted(listed) == sorted(set(DOCS.rglob("[!R]*.md")) - decisions)


def test_the_search_space_has_the_entries_of_the_strategies_and_a_new_one_last(tmp_path: Path) -> None:
    written = (ROOT / "search_space.yaml").read_text()
    assert written == search_space(written, ROOT / "strategies"), "python -m docs.generators writes it anew"
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "space.yaml").write_text(f"strategies:\n  {name}:\n    ops: [matmul]\n")
    (tmp_path / "_shared.mlir.j2").touch()
    text = "# head\nstrategies:\n  b:\n    ops: [old]\n\n  gone:\n    ops: [matmul]\n"
    entries = "  b:\n    ops: [matmul]\n\n  a:\n    ops: [matmul]\n"
    assert search_space(text, tmp_path) == f"# head\nstrategies:\n{entries}"
    (tmp_path / "a" / "space.yaml").write_text("strategies:\n  b:\n    ops: [matmul]\n")
    with pytest.raises(ValueError, match=r"^strategies/a/space\.yaml: does not begin with strategies\.a$"):
        search_space(text, tmp_path)


def test_every_command_with_its_options_and_every_public_name_and_returned_class_is_listed() -> None:
    text = commands()
    for names, command in all_commands():
        shown = section(text, " ".join(names))
        visible = [each for each in command.params if not getattr(each, "hidden", False)]
        options = [option for each in visible for option in each.opts if option.startswith("--")]
        assert [option for option in options if option not in shown] == [], names
    listed = re.findall(r"^## tuner\.(\w+)$", python_api(), re.MULTILINE)
    assert {*listed, "__version__"} == set(tuner.__all__)
    returned = re.findall(r"^### (\w+)$", python_api(), re.MULTILINE)
    assert returned == [kind.__name__ for kind in RETURNED]


@pytest.mark.parametrize("op", all_ops(), ids=lambda op: str(op.OPERATION_NAME))
def test_an_op_is_listed_with_its_attributes_and_ir_before_and_after(op: Any) -> None:
    shown = section(transform_ops(), op.OPERATION_NAME)
    assert shown.count("```mlir") >= 2
    assert [name for name in ATTRIBUTE.findall(inspect.getsource(op)) if f"`{name}`" not in shown] == []
    assert re.search(r"[Ss]ilenceable\s+failure|Never fails", shown)


def test_every_comment_and_field_that_is_read_is_listed_with_its_type() -> None:
    (read,) = re.findall(r"\((\w+(?:\|\w+)+)\)", COMMENT.pattern)
    assert [name for name, _, _ in documented_comments()] == read.split("|")
    shown = stored_documents()
    for name in ScriptProvenance.__dataclass_fields__:
        assert f"| `{name}` |" in shown
    types = [json_type(kind) for kind in (tuple[int, ...], float | None, dict[str, str], tuple[int, str])]
    assert types[:2] == ["list of: a whole number", "a number or null"]
    assert types[2:] == ["object of: text", "[a whole number, text]"]


@pytest.mark.slow
def test_the_printed_documents_have_the_listed_keys(tuner: Tuner) -> None:
    tuner.done("tune matmul 64x64x64 --trials 4")
    for command, typed in RUN_ONCE.items():
        found = tuner(f"{typed} --json").json
        document = found[0] if isinstance(found, list) else found
        row = next(row for row in command_documents().splitlines() if f"`tuner {command} --json`" in row)
        assert set(re.findall(r"`(\w+)`", row)) == set(document), command
    assert RUN_ONCE.keys() <= {command for command, _ in PRINTED}
