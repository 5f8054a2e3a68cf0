import hashlib
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.library.bundle.values import NOW, pending, program
from tuner.core.errors import UsageError
from tuner.library.bundle import archive
from tuner.library.bundle.archive import pack, read_bundle

MIB = 1 << 20
TRIALS = (
    pending(0, code=program("//\n.version 8.0 // one", cubin=b"\x7fELF one")),
    pending(1, code=program("//\n.version 8.0 // one", cubin=b"\x7fELF two")),
    pending(2, script="module {}\n// é\n"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Gives a whole bundle."""
    written = tmp_path / "pending.bundle"
    written.write_bytes(pack(TRIALS, 7, "0.1.0", NOW))
    return written


def rewritten(path: Path, change: Any) -> Path:
    """Lets ``change`` at the parts of a bundle: name -> content."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return path


def in_manifest(change: Any) -> Any:
    """Returns a change of the manifest's document."""

    def changed(parts: dict[str, bytes]) -> None:
        document = json.loads(parts["manifest.json"])
        change(document)
        parts["manifest.json"] = json.dumps(document).encode()
        parts["manifest.sha256"] = hashlib.sha256(parts["manifest.json"]).hexdigest().encode()

    return changed


def test_a_bundle_comes_back_whole(path: Path) -> None:
    bundle = read_bundle(path)
    assert bundle.trials == TRIALS
    assert (bundle.seed, bundle.tuner, bundle.created) == (7, "0.1.0", NOW)


def test_equal_bundles_have_equal_bytes(path: Path) -> None:
    assert pack(TRIALS, 7, "0.1.0", NOW) == path.read_bytes()


def test_texts_that_several_trials_share_are_kept_once(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        blobs = [name for name in file.namelist() if name.startswith("blobs/")]
    assert len(blobs) == 6  # two PTX, two scripts, two cubins


def test_the_hash_of_a_bundle_changes_with_any_of_its_code(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bundle"
    other.write_bytes(pack((*TRIALS[:2], pending(2)), 7, "0.1.0", NOW))
    assert read_bundle(other).sha256 != read_bundle(path).sha256


@pytest.mark.parametrize("kept", [0, 1, 50, 500])
def test_a_bundle_that_was_cut_off_is_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UsageError, match="is not a whole bundle"):
        read_bundle(path)


def test_a_changed_byte_is_found_or_changes_nothing(path: Path) -> None:
    content, whole, refused = path.read_bytes(), read_bundle(path), 0
    for place in range(0, len(content), 11):
        changed = bytearray(content)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        try:
            assert read_bundle(path) == whole, place
        except UsageError:
            refused += 1
    assert refused > len(content) / 11 / 2


def altered(parts: dict[str, bytes]) -> None:
    name = next(name for name, content in parts.items() if content == b"\x7fELF one")
    parts[name] = b"\x7fELF 0ne"


def without_a_blob(parts: dict[str, bytes]) -> None:
    del parts[next(name for name in parts if name.startswith("blobs/"))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (altered, r"trials\[0\]: blobs/\w{12}\.\.\. was altered after the export"),
        (without_a_blob, r"blobs/\w+ is missing: not a file of"),
        (
            lambda parts: parts.pop("manifest.json"),
            r"manifest\.json is missing: not a file of tuner-bundle",
        ),
        (lambda parts: parts.update({"manifest.json": b"{"}), r"manifest\.json: is not JSON"),
        (in_manifest(lambda it: it.update(version=2)), "found version 2 of tuner-bundle, allowed 1"),
        (in_manifest(lambda it: it.update(format="zip")), "found format 'zip', allowed 'tuner-bundle'"),
        (in_manifest(lambda it: it.update(trials=3)), "trials: is empty"),
        (in_manifest(lambda it: it.update(seed="x")), "seed: found 'x', allowed a whole number"),
        (in_manifest(lambda it: it.update(seed=-1)), "seed: found -1, allowed 0 or more"),
        (
            in_manifest(lambda it: it["trials"][2].update(script_sha256="00")),
            r"trials\[2\]: found a script of another hash than 00",
        ),
    ],
)
def test_what_is_wrong_with_a_bundle_is_one_line(path: Path, change: Any, message: str) -> None:
    rewritten(path, change)
    with pytest.raises(UsageError, match=message):
        read_bundle(path)


def test_a_part_is_not_unpacked_beyond_its_claim(path: Path) -> None:
    bomb, claimed = b"module {}" + bytes(64 * MIB), 9

    def planted(parts: dict[str, bytes]) -> None:
        del parts["manifest.json"]

    rewritten(path, planted)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", bomb)
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", len(bomb)), struct.pack("<I", claimed)))
    tracemalloc.start()
    with pytest.raises(UsageError, match="is not a whole bundle"):
        read_bundle(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()


def test_parts_that_are_too_much_together_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "BUNDLE_LIMIT_BYTES", 100)
    with pytest.raises(UsageError, match=r"pending\.bundle: found \d+ bytes once unpacked, allowed 100$"):
        read_bundle(path)


def test_machine_code_in_place_of_ptx_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.bundle"
    path.write_bytes(pack((pending(0, code=program(cubin=b"\x7fELF\xff")),), 7, "0.1.0", NOW))
    rewritten(
        path,
        in_manifest(lambda it: it["trials"][0]["program"].update(ptx=it["trials"][0]["program"]["cubin"])),
    )
    with pytest.raises(UsageError, match=r"trials\[0\]: found PTX or a script that is no text"):
        read_bundle(path)


def test_a_part_that_claims_to_be_huge_is_not_unpacked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LIMIT_BYTES", 1)
    with pytest.raises(UsageError, match=r"blobs/\w+: found \d+ bytes, allowed 1$"):
        read_bundle(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_compression_that_is_not_ours_is_refused(path: Path, compression: int) -> None:
    manifest = zipfile.ZipFile(path).read("manifest.json")
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("manifest.json", manifest)
    with pytest.raises(
        UsageError, match=rf"manifest\.json: found compression {compression}, allowed 0 and 8"
    ):
        read_bundle(path)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.bundle: cannot be read \(No such file"):
        read_bundle(tmp_path / "none.bundle")


def test_a_manifest_altered_without_its_hash_is_refused(path: Path) -> None:
    def change(parts: dict[str, bytes]) -> None:
        parts["manifest.json"] = parts["manifest.json"].replace(b'"seed": 7', b'"seed": 8')

    with pytest.raises(UsageError, match=r"manifest\.json: was altered after the export"):
        read_bundle(rewritten(path, change))


def test_a_manifest_without_a_hash_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match=r"manifest\.sha256 is missing: not a file of tuner-bundle"):
        read_bundle(rewritten(path, lambda parts: parts.pop("manifest.sha256")))


def test_a_manifest_that_claims_more_than_its_limit_is_not_unpacked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive.MANIFEST_LIMIT_BYTES == 64 << 20
    monkeypatch.setattr(archive, "MANIFEST_LIMIT_BYTES", 100)
    with pytest.raises(UsageError, match=r"manifest\.json: found \d+ bytes, allowed 100$"):
        read_bundle(path)
