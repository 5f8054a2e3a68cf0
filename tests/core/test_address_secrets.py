from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.serialization import has_secret, masked, without_secrets

SECRET = "hunter2Q"
ENCODED = "".join(f"%{ord(character):02X}" for character in SECRET)
FORMS = (  # of addresses, with a password in each place that one may have
    "postgresql://u:{}@h/d",
    "postgresql://:{}@h/d",
    "postgresql://u:{}@h:5432/d?sslmode=require",
    "postgresql://u:p@{}@h/d",
    "postgresql://u:{}/more@h/d",
    "postgresql://u:{}?more@h/d",
    "postgresql://h/d?password={}",
    "postgresql://h/d?sslmode=require&password={}",
    "postgresql://h/d?PASSWORD={}&user=u",
    "postgresql://h/d?passwd={}",
    "postgresql://h/d?pw={}",
    "postgresql://h/d?pwd={}",
    "postgresql://h/d?sslpassword={};x=y",
    "postgresql://h/d?oauth_client_secret={}",
    "postgresql://h/d?p%61ssword={}",
    "postgresql://h/d?options=-c%20my.password%3D{}",
    "postgresql//u:{}@h/d",
    "postgresql:/u:{}@h/d",
    "postgresql:u:{}@h/d",
    "postgres//h/d?password={}",
    "postgress://u:{}@h/d",
    "mysql://u:{}@h/d",
    "postgresql+asyncpg://u:{}@h/d",
    "postgresql://u:{}@h:port/d",
    "u:{}@postgresql://h/d",
    "u:{}@h/d",
    "//u:{}@h/d",
    "host=h user=u password={}",
    "host=h password = {}",
    "sqlite://u:{}@/a.db",
    "sqlite:///a.db?password={}",
    "results.db?password={}",
)


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
