"""Scripts and artifacts as blobs: bytes that are stored under their SHA-256 hash."""

import base64
import hashlib
import json
from dataclasses import replace

from tuner.core.dataclass_json import decode, encode
from tuner.core.errors import UsageError
from tuner.core.target import Artifact


def hash_of(blob: bytes) -> str:
    """Returns the SHA-256 of some bytes in hexadecimal, the name under which a fleet stores them."""
    return hashlib.sha256(blob).hexdigest()


def packed(artifact: Artifact) -> bytes:
    """Returns a compiled artifact as bytes to store: UTF-8 JSON, with machine code in base64."""
    program = artifact.program
    if program is not None:
        artifact = replace(artifact, program=replace(program, cubin=base64.b64encode(program.cubin)))
    return json.dumps(encode(artifact)).encode()


def unpacked(blob: bytes) -> Artifact:
    """Returns the artifact that ``packed`` wrote as ``blob``.

    Raises UsageError where the JSON is no artifact, ValueError where the bytes are no JSON or base64.
    """
    artifact = decode(Artifact, json.loads(blob), "artifact")
    program = artifact.program
    if program is None:
        return artifact
    return replace(artifact, program=replace(program, cubin=base64.b64decode(program.cubin)))


def require_hash(sha256: str, blob: bytes) -> bytes:
    """Returns ``blob`` unchanged. Raises UsageError where its SHA-256 differs from ``sha256``."""
    if hash_of(blob) != sha256:
        raise UsageError(f"fleet: blob {sha256[:12]}: its content does not match its hash")
    return blob
