"""Constants that child processes map: their text says where they are in a file, which has no name."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tuner.core.errors import CandidateError, MachineError
from tuner.mlir.ir.resources import (
    ConstantsFile,
    Data,
    FilePlace,
    MappedData,
    SplitPayload,
    constants_bytes,
    joined_payload,
    mapped_payload,
    split_payload,
    write_constants,
)

TEXT = 'module { "a"() {b = dense_resource<"x y"> : tensor<3xi8>, c = dense_resource<z_1> : tensor<1xi8>} }'
DATA: dict[str, Data] = {'"x y"': b"\x00\xff\x01", "z_1": memoryview(b"\x07"), "unread": b"\x01"}


def test_the_text_of_a_payload_says_where_its_constants_are() -> None:
    with mapped_payload(SplitPayload(TEXT, DATA)) as text:
        split = split_payload(text)
        assert split.text == TEXT
        assert {name: bytes(data) for name, data in split.resources.items()} == {
            '"x y"': DATA['"x y"'],
            "z_1": b"\x07",
        }
        addresses = [np.frombuffer(data, np.uint8).ctypes.data for data in split.resources.values()]
        assert not any(address % 64 for address in addresses)
        assert constants_bytes(text) == 4
        assert joined_payload(split.text, split.resources) == split.joined == text
        with mapped_payload(split) as again:  # the data are in a file already
            assert again == text
    assert bytes(split.resources["z_1"]) == b"\x07"  # what is mapped stays
    with pytest.raises(CandidateError, match=r"^payload: the file of its constants, /proc/"):
        split_payload(text).resources["z_1"]


def test_a_payload_without_data_is_its_own_text() -> None:
    with mapped_payload(split_payload("module {}")) as text:
        assert text == "module {}"


def test_a_text_maps_no_other_file(tmp_path: Path) -> None:
    other = tmp_path / "secret"
    other.write_bytes(bytes(4096))
    data = MappedData({"w": FilePlace(str(other), 64, 4)})
    with pytest.raises(CandidateError, match=r"secret is not a file of constants$"):
        data["w"]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CandidateError, match=r"^payload: the file of its constants, .*pipe: "):
        MappedData({"w": FilePlace(str(tmp_path / "pipe"), 64, 4)})["w"]


def test_the_file_has_no_name_and_ends_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = ConstantsFile()
    write_constants(file.path, TEXT, DATA)
    assert Path(file.path).stat().st_size > 64
    assert list(tmp_path.iterdir()) == []
    file.close()


def test_a_full_disk_is_said() -> None:
    with pytest.raises(MachineError, match=re.escape("No space left on device")) as caught:
        write_constants("/dev/full", TEXT, DATA)
    assert caught.value.hint == "TMPDIR names a folder with room for all weights"
