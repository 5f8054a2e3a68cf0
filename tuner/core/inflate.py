"""Decompression that ends at a limit: a few kilobytes may claim to be gigabytes."""

import zlib


def inflate(packed: bytes, limit_bytes: int) -> bytes:
    """Returns what zlib packed. Raises ValueError for more than the limit, and for what is cut or altered."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, limit_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"found {error}, allowed zlib's format") from error
    if len(content) > limit_bytes:
        raise ValueError(f"found more than {limit_bytes} bytes once unpacked, allowed {limit_bytes}")
    if not stream.eof or stream.unused_data:
        raise ValueError("found content that is cut off or goes on, allowed zlib's format")
    return content
