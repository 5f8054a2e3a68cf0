"""Decompression up to a size limit: a few compressed kilobytes may expand to gigabytes."""

import zlib


def inflate(packed: bytes, limit_bytes: int) -> bytes:
    """Returns zlib data decompressed.

    Raises ValueError for more than ``limit_bytes`` of content, and for truncated or altered data.
    """
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, limit_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"{error}: not zlib's format") from error
    if len(content) > limit_bytes:
        raise ValueError(f"found more than {limit_bytes} bytes once unpacked, allowed {limit_bytes}")
    if not stream.eof or stream.unused_data:
        raise ValueError("the content is cut off or goes on: not zlib's format")
    return content
