from typing import Any

import pytest

from tuner.core.errors import UsageError
from tuner.programs.request import DeviceOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "async"}, r"^form: found 'async', allowed streams, tokens, sync$"),
        ({"max_streams": 0}, r"^max_streams: found 0, allowed 1 and more$"),
    ],
)
def test_unknown_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DeviceOptions(**options)
