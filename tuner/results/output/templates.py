"""The Jinja2 environment of files that tuner writes: C sources, scripts of nodes, the page of a report."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


def template_environment(
    package: str,
    filters: Mapping[str, Callable[..., object]],
    *,
    is_html: bool = False,
    finalize: Callable[[object], object] | None = None,
) -> "jinja2.Environment":
    """Returns the environment of the folder ``templates`` in a package, in which an unknown name is an error.

    Lines of blocks leave no empty lines. ``filters``: name -> function. ``is_html``: values are escaped.
    ``finalize``: what is printed for the value of an expression; None: the value.
    """
    import jinja2  # not at start-up

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=is_html,  # noqa: S701 - other files than HTML are written as they are
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment
