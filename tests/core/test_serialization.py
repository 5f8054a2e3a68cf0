import datetime
import io
import json
import sys
import tracemalloc
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.elsewhere.bundle.values import NOW, RESULTS, WRONG, measured, pending
from tuner.core import serialization, text_files
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import UsageError
from tuner.core.passwords import has_secret, masked, without_secrets
from tuner.core.remote_results import MeasuredTrial, Origin, PendingTrial, RemoteResults
from tuner.core.runs import ORIGINS, ChosenStrategy, InitialConfiguration
from tuner.core.serialization import decode, encode, known_part
from tuner.elsewhere.fleet.work import inflate

SECRET = "hunter2Q"
ENCODED = "".join(f"%{ord(character):02X}" for character in SECRET)
SCHEMES = ("postgresql://", "postgresql//", "postgresql:/", "postgresql:", "postgress://", "mysql://")
KEYS = ("password={}", "sslmode=require&password={}", "PASSWORD={}&user=u", "passwd={}", "pw={}", "pwd={}")
MORE_KEYS = ("sslpassword={};x=y", "oauth_client_secret={}", "p%61ssword={}", "options=-c%20my.password%3D{}")
FORMS = (  # of addresses, with a password in each place that one may have
    *(f"{scheme}u:{{}}@h/d" for scheme in (*SCHEMES, "postgresql+asyncpg://", "", "//")),
    *(f"postgresql://{rest}" for rest in (":{}@h/d", "u:{}@h:5432/d?sslmode=require", "u:{}@h:port/d")),
    *(f"postgresql://u:{secret}@h/d" for secret in ("p@{}", "{}/more", "{}?more")),
    *(f"postgresql://h/d?{key}" for key in (*KEYS, *MORE_KEYS)),
    *("postgres//h/d?password={}", "u:{}@postgresql://h/d", "sqlite://u:{}@/a.db"),
    *("host=h user=u password={}", "host=h password = {}"),
    *("sqlite:///a.db?password={}", "results.db?password={}"),
)
MIB = 1 << 20


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [SECRET, ENCODED, f"%25{ENCODED[1:]}"])
def test_a_password_is_masked_wherever_it_stands(form: str, secret: str) -> None:
    address = form.format(secret)
    assert has_secret(address)
    assert secret not in masked(address)
    assert "***" in masked(address)


@pytest.mark.parametrize("form", FORMS)
def test_what_a_driver_says_is_reported_without_it(form: str) -> None:
    for secret in (SECRET, ENCODED):
        address = form.format(secret)
        for said in (secret, SECRET, address, repr(address), quote(address), f"host {secret}@h"):
            text = without_secrets(f"could not connect: {said}!", address)
            assert SECRET not in text
            assert text.startswith("could not connect: ")


@pytest.mark.parametrize(
    "address",
    [
        *("tuner.db", "/data/50% of a/tu?ner#.db", "sqlite:////data/tuner.db", "~/a b.db", ""),
        "postgresql://u@h:5432/d?sslmode=verify-full&sslkey=tls.key&passfile=/home/u/.pgpass",
        "postgresql:///d?host=/run/postgresql",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address: str) -> None:
    assert masked(address) == address
    assert not has_secret(address)
    assert without_secrets(f"cannot open {address}", address) == f"cannot open {address}"


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_masked_without_an_error(address: str, said: str) -> None:
    assert has_secret(address) == (masked(address) != address) or "***" in address
    without_secrets(said, address)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(encode(value), allow_nan=False))


@pytest.mark.parametrize("value", [RESULTS, pending(), measured(1, WRONG)])
def test_values_come_back_equal(value: RemoteResults | PendingTrial | MeasuredTrial) -> None:
    assert decode(type(value), through_json(value), "file") == value


@pytest.mark.parametrize(
    ("path", "found", "message"),
    [
        (("origin", "number"), "one", r"^file\.origin\.number: found 'one', allowed a whole number$"),
        (("origin", "number"), True, r"^file\.origin\.number: found True, allowed a whole number$"),
        (("origin", "number"), 2**63, r"^file\.origin\.number: found 9223372036854775808, allowed -9223"),
        (("origin",), [], r"^file\.origin: found \[\], allowed a mapping \(key: value\)$"),
        (("finished",), "soon", r"^file\.finished: found 'soon', allowed a datetime$"),
        (("finished",), "2026-01-01T00:00:00", r"allowed a moment with its zone$"),
        (("problem", "dtype"), "f7", r"dtype: found 'f7', allowed f32"),
        (("stage_s",), [["load", 1.0, 2.0]], r"^file\.stage_s\[0\]: found .*, allowed a list of 2$"),
        (("stage_s",), 3, r"^file\.stage_s: found 3, allowed a list$"),
        (("outcome",), {"stage": "verify"}, r"^file\.outcome\.reason: is missing; it has no default$"),
        (("outcome",), None, r"^file\.outcome: found nothing, allowed Measurement or Failure$"),
        (("verdict",), "x" * 99, r"^file\.verdict: found 'x{59}\.\.\., allowed a mapping \(key: value\)$"),
        (("extra",), 1, r"^file\.extra: found the key 'extra', allowed .*, artifact_sha256, "),
    ],
)
def test_what_does_not_fit_is_reported_by_place(path: tuple[str, ...], found: object, message: str) -> None:
    document = through_json(measured())
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = found
    with pytest.raises(UsageError, match=message):
        decode(MeasuredTrial, document, "file")


AS_PAIR = serialization.form(tuple[float, float], lambda z: (z.real, z.imag), lambda pair: complex(*pair))


@dataclass(frozen=True)
class Part:
    share: Annotated[float, serialization.number("a share", lambda share: 0 <= share <= 1)]
    count: Annotated[int, serialization.whole(1)] | None = None
    knobs: dict[str, int | str] = field(default_factory=dict)
    place: complex = field(default=0j, metadata=AS_PAIR)


PART = Part(0.5, 3, {"tile": 4, "order": "mn"}, 1 + 2j)


def test_what_is_written_and_read_differs_in_form_alone() -> None:
    assert encode(NOW) == "2026-03-04T05:06:07.000089+00:00"
    assert encode(Origin("r", 1)) == {"run": "r", "number": 1}
    document = through_json(measured())
    document["outcome"]["median_s"] = 1  # a whole number of seconds
    assert decode(MeasuredTrial, document, "file").outcome.median_s == 1.0  # type: ignore[union-attr]
    document = through_json(PART)
    assert (document["place"], decode(Part, document, "file")) == ([1.0, 2.0], PART)
    assert decode(Part, known_part(Part, document | {"later": 1}, "file"), "file") == PART
    with pytest.raises(UsageError, match=r"^file: found 3, allowed a mapping \(key: value\)$"):
        known_part(Part, 3, "file")
    document = through_json(measured(1, WRONG))
    document["outcome"]["stage"] = "moon"
    with pytest.raises(UsageError, match=r"^file\.outcome\.stage: found 'moon', allowed a Stage$"):
        decode(MeasuredTrial, document, "file")


@pytest.mark.parametrize(
    ("key", "found", "message"),
    [
        ("share", 2, r"^a file: share: found 2, allowed a share$"),
        ("share", True, r"^a file: share: found True, allowed a share$"),
        ("count", 0, r"^a file: count: found 0, allowed 1 or more$"),
        ("knobs", {"tile": [4]}, r"^a file: knobs\.tile: found \[4\], allowed a whole number or text$"),
        ("knobs", [], r"^a file: knobs: found \[\], allowed a mapping \(key: value\)$"),
        ("place", [1.0], r"^a file: place: found \[1\.0\], allowed a list of 2$"),
    ],
)
def test_what_a_field_does_not_take_is_reported_in_its_words(key: str, found: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        decode(Part, through_json(PART) | {key: found}, "a file: ")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, b"\xff"])
def test_text_that_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(UsageError, match=r"^file: is not JSON: "):
        serialization.parsed(text, "file")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ([], "^file: found format None, allowed 'mine'$"),
        ({"format": "other"}, "^file: found format 'other', allowed 'mine'$"),
        ({"format": "mine", "version": 2}, "^file: found version 2 of mine, allowed 1$"),
    ],
)
def test_a_file_of_another_program_or_version_is_refused(head: object, message: str) -> None:
    serialization.require_format({"format": "mine", "version": 1}, "mine", 1, "file")
    with pytest.raises(UsageError, match=message):
        serialization.require_format(head, "mine", 1, "file")


# Text of users, and packed text: read whole or refused by one line, shown without what does not print.
def test_a_file_is_read_whole_or_from_standard_input_and_what_has_no_end_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes("module {} // \u00fc\n".encode())
    assert text_files.read_text(tmp_path / "a", "MLIR text") == "module {} // \u00fc\n"
    assert text_files.read_text_or_stdin(tmp_path / "a", "MLIR text", 14 + 2) == "module {} // \u00fc\n"
    with pytest.raises(UsageError, match=r"^/dev/zero: found more than 100 bytes, allowed 100$"):
        text_files.read_text(Path("/dev/zero"), "MLIR text", 100)

    def given(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    given(b"module {}")
    assert text_files.read_text_or_stdin(Path("-"), "MLIR text") == "module {}"
    for content, message in (
        (b"\xff", "not PTX text: byte 0 is not UTF-8"),
        (b"12345", "found more than 4 bytes, allowed 4$"),
        (None, r"cannot be read \(it is closed\), expected PTX text$"),
    ):
        monkeypatch.setattr(sys, "stdin", None) if content is None else given(content)
        with pytest.raises(UsageError, match=f"^standard input: {message}"):
            text_files.read_text_or_stdin(Path("-"), "PTX text", 4)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("none", None, r"/none: cannot be read \(No such file or directory\), expected MLIR text$"),
        (".", None, r": cannot be read \(Is a directory\), expected MLIR text$"),
        ("binary", b"ab\xff", r"/binary: not MLIR text: byte 2 is not UTF-8$"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, name: str, content: bytes | None, line: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=line):
        text_files.read_text(tmp_path / name, "MLIR text")


def test_the_most_similar_name_next_to_a_missing_file_is_its_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("best.mlir", "best.source.mlir", "results.csv", "sub/rows.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    for missing, hint in (
        ("bets.mlir", "did you mean best.mlir?"),
        ("./best.sorce.mlir", "did you mean best.source.mlir?"),
        ("sub/row.csv", "did you mean sub/rows.csv?"),
        *(("other.yaml", ""), ("none/best.mlir", ""), ("results.csv", "")),
    ):
        assert text_files.similar_file_hint(Path(missing)) == hint, missing
    with pytest.raises(UsageError) as caught:
        text_files.read_text(Path("bets.mlir"), "MLIR text")
    assert caught.value.hint == "did you mean best.mlir?"


@given(st.text())
@example("two\nlines\n")
@example("a\ttab")
@example("µ Ω 漢字 ✓")
def test_what_does_not_print_is_spelled_out_and_json_stays_as_it_was(text: str) -> None:
    assert serialization.printable(text).isprintable()
    assert serialization.CONTROLS.search(serialization.printable_lines(text)) is None
    if text.isprintable():
        assert serialization.printable(text) == text
    if text.replace("\n", "").replace("\t", "").isprintable():
        assert serialization.printable_lines(text) == text
    assert json.loads(serialization.printable_lines(json.dumps({"name": text}))) == {"name": text}


@given(st.binary(max_size=200), st.integers(0, 200))
def test_what_fits_comes_back_and_what_does_not_is_refused(content: bytes, limit: int) -> None:
    packed = zlib.compress(content)
    if len(content) <= limit:
        assert inflate(packed, limit) == content
    else:
        with pytest.raises(ValueError, match=f"found more than {limit} bytes once unpacked"):
            inflate(packed, limit)
    for broken in (b"", b"no zlib", packed[:-1], packed + b"more"):
        with pytest.raises(ValueError, match="not zlib's format"):
            inflate(broken, 201)


@pytest.mark.slow
def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = zlib.compress(bytes(64 * MIB))
    tracemalloc.start()
    with pytest.raises(ValueError, match="found more than"):
        inflate(bomb, MIB)
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()


# How targets, strategies, moments and origins are spelled.
def test_targets_and_strategies_are_spelled_as_they_are_read_and_a_replay_has_no_machine() -> None:
    for target_text, target, has_machine in (
        ("cpu", TargetName("cpu"), True),
        ("cuda:sm_90a", TargetName("cuda", "sm_90a"), True),
        ("replay:/data/a:b.t4.json", TargetName("replay", "/data/a:b.t4.json"), False),
    ):
        assert (TargetName.parse(target_text), target.has_machine) == (target, has_machine)
        assert target.text == str(target) == target_text
    for text, chosen in (
        *((name, ChosenStrategy(name)) for name in ("first", "of=a recording")),
        ("mine=/a=b/mine.mlir", ChosenStrategy("mine", Path("/a=b/mine.mlir"))),
    ):
        assert (chosen.text, ChosenStrategy.parse(text)) == (text, chosen)


def test_a_moment_is_utc_a_budget_has_a_unit_and_a_point_an_origin() -> None:
    day = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    assert serialization.parse_moment("2026-01-31") == day
    assert serialization.with_zone(datetime.datetime(2026, 1, 31)) == day
    assert serialization.parse_moment("2026-01-31T12:00+02:00").utcoffset() == datetime.timedelta(hours=2)
    with pytest.raises(UsageError, match="since: found 'now', allowed such as"):
        serialization.parse_moment("now")
    budgets = {"60s": 60, "5m": 300, "1.5h": 5400, "7": 7, "0.5s": 0.5}
    assert {text: serialization.parse_seconds(text) for text in budgets} == budgets
    candidate = Candidate.of("fake", {"x": 1})
    assert all(InitialConfiguration(candidate, origin).source == "" for origin in ORIGINS)
    allowed = "allowed given, warm start, shipped, space file, seed"
    with pytest.raises(ValueError, match=f"origin: found 'hunch', {allowed}"):
        InitialConfiguration(candidate, "hunch")


@pytest.mark.parametrize("text", ["", "s", "0", "-5s", "5 s", "1d", "1e9", "nan", "9" * 400])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"budget: found .*, allowed a time such as 60s, 5m or 1h"):
        serialization.parse_seconds(text)
