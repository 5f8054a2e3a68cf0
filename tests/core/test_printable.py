import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.printable import CONTROLS, printable, printable_lines


@given(st.text())
def test_what_does_not_print_is_spelled_out(text: str) -> None:
    assert printable(text).isprintable()
    assert CONTROLS.search(printable_lines(text)) is None
    if text.isprintable():
        assert printable(text) == text


@given(st.text())
def test_json_stays_the_json_that_it_was(text: str) -> None:
    document = json.dumps({"name": text})
    assert json.loads(printable_lines(document)) == {"name": text}


@pytest.mark.parametrize("text", ["", "two\nlines\n", "a\ttab", "µ Ω 漢字 ✓"])
def test_lines_tabs_and_letters_stay(text: str) -> None:
    assert printable_lines(text) == text
