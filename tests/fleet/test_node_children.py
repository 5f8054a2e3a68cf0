"""Whoever gives an order to a node's children hears what became of it, whatever goes wrong there."""

import contextlib
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.fleet.values import work
from tests.tuning.fakes import FAKE
from tuner.core.errors import TunerError
from tuner.fleet.node_children import NodeChildren
from tuner.fleet.work import EVALUATE

WITHIN_S = 30.0


def no_children(*_: Any) -> Any:
    raise ValueError("odd")


def no_file_left(*_: Any) -> None:
    raise OSError("too many open files")


@pytest.mark.parametrize("stage", ["compile", EVALUATE])
def test_an_error_reaches_who_gave_the_order_and_the_next_one_is_taken(stage: str) -> None:
    with contextlib.closing(NodeChildren(replace(FAKE.outcomes, children=no_children), slots=1)) as children:
        for number in range(2):
            order = children.submit(work("run", number, stage), (b"",))
            with pytest.raises(ValueError, match="odd"):
                order.done.result(WITHIN_S)


def test_orders_are_refused_once_the_thread_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.fleet.node_children.sleep_until_news", no_file_left)
    with contextlib.closing(NodeChildren(replace(FAKE.outcomes, children=no_children), slots=1)) as children:
        for thread in threading.enumerate():
            if thread.name == "children":
                thread.join(WITHIN_S)
        for number in range(2):
            order = children.submit(work("run", number, EVALUATE), (b"",))
            with pytest.raises(TunerError, match="children: OSError: too many open files"):
                order.done.result(WITHIN_S)
