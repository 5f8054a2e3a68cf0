import pytest

from tuner.cli.commands.catalogue import starter_files
from tuner.core.errors import UsageError
from tuner.space.file.reading import parse_space


def test_starter_files_name_each_other_and_every_knob_and_leave_nothing_to_be_filled_in() -> None:
    template, space, test = starter_files("mine", ())
    assert (template.name, space.name, test.name) == ("mine.mlir.j2", "mine.yaml", "test_mine.py")
    assert "template: mine.mlir.j2" in space.text
    assert 'with_name("mine.yaml")' in test.text
    compile(test.text, test.name, "exec")
    template, space, test = starter_files("mine", ())
    assert not [file.name for file in (template, space, test) if "NAME" in file.text]
    (entry,) = parse_space(space.text.replace("extends: default\n", ""), space.name).strategies
    assert all(f"{{{{ {knob.name} }}}}" in template.text for knob in entry.knobs)


@pytest.mark.parametrize("name", ["", "my-tiles", "../mine", "7up", "a b", "shipped"])
def test_what_is_no_name_or_that_of_a_shipped_strategy_is_refused(name: str) -> None:
    found = "'shipped' is a shipped strategy; choose another name"
    message = found if name == "shipped" else "found .*, allowed letters, digits and _, no digit first"
    with pytest.raises(UsageError, match=f"^NAME: {message}$"):
        starter_files(name, ("shipped",))
