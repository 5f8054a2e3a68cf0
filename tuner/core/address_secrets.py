"""Passwords in a database's URL or connection string: found, and masked before anything is printed."""

import re
from typing import Final
from urllib.parse import unquote

MASK: Final = "***"
# of parameters; passfile and sslkey name files
SECRET_NAME: Final = re.compile(r"(?i)pass(?!file)|pwd|\bpw\b|secret|token|credential")
# name=value, in a URL's query or in a connection string, which may have spaces and quotes
PARAMETER: Final = re.compile(r"([^=?&;#\s]+)\s*=\s*('[^']*'|[^?&;#\s]+)")
ENCODED_TIMES: Final = 3  # how often a text may be percent-encoded
LEAST_CHARACTERS: Final = 3  # of a part that is looked for in other texts: shorter parts are in any text


def masked(address: str) -> str:
    """Returns a database URL or connection string for printing, with *** in place of possible passwords.

    A mistyped URL is masked too.
    """
    shown, place = [], 0
    for start, end in _spans(address):
        shown += [address[place:start], MASK]
        place = end
    return "".join((*shown, address[place:]))


def has_secret(address: str) -> bool:
    """Returns whether a database's address may hold a password: ``user:password@`` or ``password=...``."""
    return bool(_spans(address))


def without_secrets(text: str, *addresses: str) -> str:
    """Returns ``text`` with *** in place of the passwords that occur in the database addresses ``addresses``.

    ``text`` is, for example, a driver's error message. A password is masked as it is in the address,
    percent-decoded, and escaped, and so are its parts: a driver may take half of a password for a host name.
    What has fewer than three characters stays, be it a part or a whole password.
    """
    found = {form for address in addresses for form in _forms(address)}
    for form in sorted(found, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def _spans(address: str) -> list[tuple[int, int]]:
    """Returns (start, end) of each secret in an address, in order."""
    scheme, is_url, _ = address.partition("://")
    first = len(scheme) + len(is_url) if is_url and ":" not in scheme else 0
    colon, at = address.find(":", first), address.rfind("@")
    user_info = [(colon + 1, at)] if -1 < colon < at - 1 else []
    rest = at + 1 if user_info else 0
    return user_info + _parameter_spans(address, rest)


def _parameter_spans(address: str, place: int) -> list[tuple[int, int]]:
    found = []
    for parameter in PARAMETER.finditer(address, place):
        name, value = map(_decoded, parameter.groups())
        if SECRET_NAME.search(name) or ("=" in value and SECRET_NAME.search(value)):
            found.append(parameter.span(2))
    return found


def _forms(address: str) -> set[str]:
    """Returns the texts in which the secrets of an address may appear: whole, decoded, in parts, escaped."""
    secrets = {address[start:end] for start, end in _spans(address)}
    whole = secrets | {_decoded(secret) for secret in secrets}
    parts = {part for secret in whole for part in re.split(r"[@:/?#&=\s]", secret)}
    return {
        form for form in whole | parts | {repr(each)[1:-1] for each in whole} if len(form) >= LEAST_CHARACTERS
    }


def _decoded(text: str) -> str:
    for _ in range(ENCODED_TIMES):
        text = unquote(text)
    return text
