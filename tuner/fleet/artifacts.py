"""Scripts and artifacts as bytes that are known by their hash."""

import base64
import hashlib
import json
from dataclasses import replace

from tuner.core.dataclass_json import decode, encode
from tuner.core.errors import UsageError
from tuner.core.target import Artifact


def hash_of(blob: bytes) -> str:
    """Returns the name of a blob."""
    return hashlib.sha256(blob).hexdigest()


def packed(artifact: Artifact) -> bytes:
    """Returns the bytes of an artifact: JSON, machine code as base64."""
    program = artifact.program
    if program is not None:
        artifact = replace(artifact, program=replace(program, cubin=base64.b64encode(program.cubin)))
    return json.dumps(encode(artifact)).encode()


def unpacked(blob: bytes) -> Artifact:
    """Returns the artifact of packed bytes. Raises UsageError for others."""
    artifact = decode(Artifact, json.loads(blob), "artifact")
    program = artifact.program
    if program is None:
        return artifact
    return replace(artifact, program=replace(program, cubin=base64.b64decode(program.cubin)))


def require_hash(sha256: str, blob: bytes) -> bytes:
    """Returns the blob. Raises UsageError where it is not the one that its name says."""
    if hash_of(blob) != sha256:
        raise UsageError(f"fleet: blob {sha256[:12]}: found altered content, allowed what its hash says")
    return blob
