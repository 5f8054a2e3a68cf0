"""Compiled templates are kept in files, and a file that cannot be used or written changes nothing."""

import sys
from pathlib import Path

import jinja2
import pytest

from tuner.space.scripts.strategy import CompiledTemplates


def rendered(templates: Path, kept: Path) -> str:
    """Returns what the template ``top`` gives in a new environment."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates), bytecode_cache=CompiledTemplates(kept), autoescape=False
    )
    return environment.get_template("top").render(word="a")


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "top").write_text("{{ word }}!")
    return folder


@pytest.fixture(autouse=True)
def _may_write_byte_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def test_a_compiled_template_is_taken_from_its_file(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    assert rendered(templates, kept) == "a!"
    assert len(list(kept.iterdir())) == 1

    def compiled(*_: object, **__: object) -> str:
        raise AssertionError("compiled again")

    monkeypatch.setattr(jinja2.Environment, "compile", compiled)
    assert rendered(templates, kept) == "a!"


def test_a_changed_template_and_a_damaged_file_are_compiled_again(templates: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    rendered(templates, kept)
    (templates / "top").write_text("{{ word }}?")
    assert rendered(templates, kept) == "a?"
    (file,) = kept.iterdir()
    for damaged in (b"", file.read_bytes()[:-5], b"x" * 100):
        file.write_bytes(damaged)
        assert rendered(templates, kept) == "a?"


def test_without_a_folder_to_write_in_templates_are_compiled(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    assert rendered(templates, tmp_path / "file" / "kept") == "a!"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(templates, tmp_path / "kept") == "a!"
    assert not (tmp_path / "kept").exists()
