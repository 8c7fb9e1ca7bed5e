"""URLs of PostgreSQL, taken apart."""

import traceback
from pathlib import Path
from typing import Any

import pytest

from tidemill.engines.postgres.url import Address, Direct, PostgresUrl, parse_url
from tidemill.model.errors import BadUrl


def parsed(url: str) -> PostgresUrl:
    return parse_url(url, "tidemill")


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("postgresql://db", [("db", 5432)]),
        ("postgres://u@db:6000/shop", [("db", 6000)]),
        ("postgresql://u@one:1,two:2,three/shop", [("one", 1), ("two", 2), ("three", 5432)]),
        ("postgresql://u@[::1]:7,[fe80::1]/shop", [("::1", 7), ("fe80::1", 5432)]),
        ("postgresql://u@one,two/shop?port=6000", [("one", 6000), ("two", 6000)]),
        ("postgresql://u@one,two/shop?port=1,2", [("one", 1), ("two", 2)]),
        ("postgresql:///shop?host=one,two&port=1,2", [("one", 1), ("two", 2)]),
        ("postgresql:///shop?host=/run/postgresql", [("/run/postgresql", 5432)]),
        ("postgresql://%2Frun%2Fpg:6000/shop", [("/run/pg", 6000)]),
        ("postgresql:///shop", []),
        ("postgresql+asyncpg://u@db:6000/shop", [("db", 6000)]),
        ("postgresql+psycopg:///shop?host=/run/postgresql", [("/run/postgresql", 5432)]),
    ],
)
def test_hosts(url: str, addresses: list[tuple[str, int]]) -> None:
    assert parsed(url).addresses == tuple(Address(*each) for each in addresses)


def test_the_driver_of_sqlalchemy_is_not_shown() -> None:
    assert str(parsed("postgresql+asyncpg://u:p@db/shop")) == "postgresql://u@db:5432/shop"


def test_parts_are_decoded() -> None:
    found = parsed("postgresql://u%40x:p%2F%3F%23%40%3A@db/my%20shop")
    assert (found.user, found.password, found.database) == ("u@x", "p/?#@:", "my shop")
    assert parsed("postgresql://u:p@ss@db/shop").password == "p@ss"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("postgresql://one/shop", "any"),
        ("postgresql://one,two/shop", "read-write"),
        ("postgresql://one,two/shop?target_session_attrs=any", "any"),
        ("postgresql://one/shop?target_session_attrs=primary", "primary"),
    ],
)
def test_of_several_hosts_one_is_wanted_that_can_be_written_to(url: str, target: str) -> None:
    assert parsed(url).target == target


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("prepared=yes", "prepared", True),
        ("prepared=no", "prepared", False),
        ("prepared=auto", "prepared", None),
        ("listen=no", "listen", False),
        ("listen=db:5432", "listen", Direct(Address("db", 5432))),
        ("listen=me@db:5432/shop", "listen", Direct(Address("db", 5432), "me", "shop")),
        ("listen=[::1]:5432", "listen", Direct(Address("::1", 5432))),
        ("durability=off", "durability", "off"),
        ("call_timeout=0.5", "call_timeout", 0.5),
        ("connect_timeout=3", "connect_timeout", 3.0),
        ("sslmode=verify-full", "tls", {"sslmode": "verify-full"}),
    ],
)
def test_options(option: str, name: str, value: Any) -> None:
    assert getattr(parsed(f"postgresql://db/shop?{option}"), name) == value


@pytest.mark.parametrize(
    "option",
    [
        "colour=blue",
        "durability=some",
        "call_timeout=never",
        "call_timeout=0",
        "prepared=maybe",
        "listen=1",
        "listen=me:secret@db:5432",
        "sslmode=maybe",
        "sslkey=/dev/null",
        "target_session_attrs=standby",
        "port=0",
        "port=1,2",
        "port=x",
    ],
)
def test_options_that_cannot_be_meant(option: str) -> None:
    with pytest.raises(BadUrl):
        parsed(f"postgresql://db/shop?{option}")


@pytest.mark.parametrize("wrong", ["missing.crt", "not-a-certificate.crt"])
@pytest.mark.parametrize("option", ["sslrootcert", "sslcert"])
def test_files_of_tls_are_checked_before_anything_else(tmp_path: Path, option: str, wrong: str) -> None:
    (tmp_path / "not-a-certificate.crt").write_text("hello")
    with pytest.raises(BadUrl, match=rf"{option}.*{wrong}"):
        parsed(f"postgresql://db/shop?sslmode=verify-ca&{option}={tmp_path / wrong}")


@pytest.mark.parametrize("character", "/?#@:[]%,&= \\")
def test_a_password_that_was_not_encoded_is_not_repeated(character: str) -> None:
    """Whatever such a URL is taken for, no message shows a part of the password."""
    for password in (f"hush{character}s3cret", f"1{character}s3cret", f"s3cret{character}1"):
        for url in (f"postgresql://u:{password}@db/shop", f"postgresql://u:{password}@db:5/shop?prepared=no"):
            try:
                found = parsed(url)
            except BadUrl as error:
                shown = "".join(traceback.format_exception(error))
            else:
                assert found.password == password
                shown = f"{found} {found!r}"
            assert "s3cret" not in shown
            assert "hush" not in shown
