"""Names of dialects by the version of MLIR."""

from tuner.library.entries import LibraryFile
from tuner.library.library import for_version, versions_text

HEADER = "// made by   tuner 0.1.0, for mlir-23\n"
OP = "      transform.apply_patterns.x86.vector_contract_to_fma\n"


def test_a_renamed_dialect_has_the_name_of_its_version() -> None:
    newer = LibraryFile("library.mlir", (HEADER + OP).encode())
    older = for_version("mlir-22", newer)
    assert older.content.decode() == (HEADER + OP).replace("mlir-23", "mlir-22").replace(
        ".x86.", ".x86vector."
    )
    assert for_version("mlir-23", older) == newer
    assert versions_text(older.content.decode()) == "mlir-22"


def test_what_both_versions_read_stays_as_it_is() -> None:
    text = "// made by   tuner 0.1.0, for mlir-22 and mlir-23\nmodule {\n}\n"
    file = LibraryFile("library.mlir", text.encode())
    assert for_version("mlir-22", file) == for_version("mlir-23", file) == file
    other = LibraryFile("mm.o", OP.encode() + b"\xff")
    assert for_version("mlir-22", other) == other
