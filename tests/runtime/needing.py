"""A module of an extension whose dependency is missing."""

import importlib

X = importlib.import_module("no_such_dependency")
