import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeTarget
from tuner.runtime.workers.protocol import LENGTH, CallRequest, Factory, Inbox, Message, Reply, encode

MESSAGES = st.lists(
    st.one_of(
        st.builds(Reply, st.binary(max_size=200)),
        st.builds(CallRequest, st.text(max_size=9), st.tuples(st.integers())),
    ),
    max_size=5,
)


@given(MESSAGES, st.data())
def test_messages_arrive_whole_and_in_order_however_the_bytes_are_cut(
    messages: list[Message], data: st.DataObject
) -> None:
    stream = b"".join(encode(message) for message in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    inbox, arrived = Inbox(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        inbox.add(stream[start:end])
        while (message := inbox.take()) is not None:
            arrived.append(message)
    assert arrived == messages


def test_garbage_is_no_message() -> None:
    inbox = Inbox()
    inbox.add(LENGTH.pack(7) + b"garbage")
    with pytest.raises(pickle.UnpicklingError, match="pickle data was truncated"):
        inbox.take()


def test_a_factory_builds_with_what_it_is_given_first() -> None:
    assert Factory("builtins:dict", (), (("a", 1),)).build() == {"a": 1}
    assert Factory("builtins:divmod", (3,)).build(17) == (5, 2)
    assert isinstance(Factory("tests.fakes:FakeTarget").build(), FakeTarget)


@pytest.mark.parametrize("path", ["", "tests.fakes", ":FakeTarget", "tests.fakes:"])
def test_a_factory_names_module_and_callable(path: str) -> None:
    with pytest.raises(ValueError, match=r"factory: found '.*', allowed 'module:callable'"):
        Factory(path)
