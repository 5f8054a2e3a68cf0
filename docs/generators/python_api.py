"""The Python API: Sphinx reads the docstrings of the public names."""

import inspect

import tuner
from docs.generators.markdown import fenced


def python_api() -> str:
    """Returns a directive of Sphinx's autodoc for each public name."""
    return "\n".join(_directive(name) for name in tuner.__all__ if not name.startswith("_"))


def _directive(name: str) -> str:
    found = getattr(tuner, name)
    if isinstance(found, type) and issubclass(found, BaseException):
        return fenced("{eval-rst}", f".. autoexception:: tuner.{name}")
    kind = "class" if isinstance(found, type) else "function"
    assert kind == "class" or inspect.isfunction(inspect.unwrap(found)), name
    return fenced("{eval-rst}", f".. auto{kind}:: tuner.{name}")
