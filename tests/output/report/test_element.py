from tuner.output.report.element import Markup, element, joined


def test_text_and_attributes_are_escaped_and_elements_are_not() -> None:
    inner = element("b", "<1 & 2>")
    assert element("p", inner, title='"<') == '<p title="&quot;&lt;"><b>&lt;1 &amp; 2&gt;</b></p>'
    assert joined(("<", Markup("<br>"), None)) == "&lt;<br>"


def test_attributes_are_named_as_in_html() -> None:
    drawn = element("a", class_="x", aria_label="y", viewBox="0 0 1 1")
    assert drawn == '<a class="x" aria-label="y" viewBox="0 0 1 1"></a>'


def test_an_attribute_may_have_no_value_or_be_left_out() -> None:
    assert element("p", hidden=True, title=None, draggable=False) == "<p hidden></p>"


def test_what_holds_nothing_is_closed_as_its_language_does() -> None:
    assert element("br") == "<br>"
    assert element("line", x1=0.0, x2=1.25) == '<line x1="0" x2="1.2"/>'


def test_coordinates_are_short() -> None:
    assert [element("line", x=x) for x in (100.04, -0.04, 1e6)] == [
        '<line x="100"/>',
        '<line x="-0"/>',
        '<line x="1000000"/>',
    ]
