"""Which files have their symbols hidden; what it does to a real one is tested with the writer."""

import pytest

from tuner.library.c.kernels import with_hidden_symbols


@pytest.mark.parametrize("code", [b"", b"\x7fELF\x01\x01" + bytes(64), b"\x7fELF\x02\x02" + bytes(64)])
def test_another_file_than_an_object_file_of_64_bits_is_refused(code: bytes) -> None:
    with pytest.raises(ValueError, match="no ELF-64 object file in little-endian order"):
        with_hidden_symbols(code)
