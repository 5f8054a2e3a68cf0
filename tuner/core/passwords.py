"""Passwords in addresses of databases: whether there are any, and texts without them."""

import re
from itertools import chain
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
    """Returns a database address, which may be mistyped, with *** in place of all that may be a password."""
    pieces = []
    shown_end = 0
    for start, end in _spans(address):
        pieces += [address[shown_end:start], MASK]
        shown_end = end
    return "".join((*pieces, address[shown_end:]))


def has_secret(address: str) -> bool:
    """Returns whether a database's address may hold a password: ``user:password@`` or ``password=...``."""
    return bool(_spans(address))


def without_secrets(text: str, *addresses: str) -> str:
    """Returns ``text`` with *** in place of the passwords that occur in the database addresses ``addresses``.

    Passwords are also recognized percent-decoded and escaped, and by parts of 3 or more characters, as a
    driver may quote a part only.
    """
    spellings = set(chain.from_iterable(map(_spellings, addresses)))
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, MASK)
    return text


def _spans(address: str) -> list[tuple[int, int]]:
    """Returns where passwords begin and end: between ":" and "@", and values of parameters such as pwd."""
    scheme, is_url, _ = address.partition("://")
    first = 0
    if is_url and ":" not in scheme:
        first = len(scheme) + len(is_url)
    colon = address.find(":", first)
    at = address.rfind("@")
    spans = []
    parameters_start = 0
    if -1 < colon < at - 1:
        spans.append((colon + 1, at))
        parameters_start = at + 1
    for parameter in PARAMETER.finditer(address, parameters_start):
        name, value = map(_decoded, parameter.groups())
        if SECRET_NAME.search(name) or ("=" in value and SECRET_NAME.search(value)):
            spans.append(parameter.span(2))
    return spans


def _spellings(address: str) -> set[str]:
    """Returns the texts by which others may quote an address's passwords: decoded, escaped, in parts."""
    passwords = {address[start:end] for start, end in _spans(address)}
    passwords |= set(map(_decoded, passwords))
    spellings = set(passwords)
    for password in passwords:
        spellings.add(repr(password)[1:-1])
        spellings.update(re.split(r"[@:/?#&=\s]", password))
    return {spelling for spelling in spellings if len(spelling) >= LEAST_CHARACTERS}


def _decoded(text: str) -> str:
    for _ in range(ENCODED_TIMES):
        text = unquote(text)
    return text
