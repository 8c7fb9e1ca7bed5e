"""A Redis URL, taken apart."""

import pytest

from tidemill.engines.redis.url import parse_url
from tidemill.model.errors import BadUrl


@pytest.mark.parametrize(
    ("url", "where", "shown"),
    [
        ("redis://", ("localhost", 6379, None, 0), "redis://localhost:6379/0"),
        ("redis://h", ("h", 6379, None, 0), "redis://h:6379/0"),
        ("redis://h:7000/3", ("h", 7000, None, 3), "redis://h:7000/3"),
        ("redis://h/?db=4", ("h", 6379, None, 4), "redis://h:6379/4"),
        ("redis://[::1]:7000/1", ("::1", 7000, None, 1), "redis://[::1]:7000/1"),
        ("rediss://h", ("h", 6379, None, 0), "rediss://h:6379/0"),
        (
            "redis+unix:///run/r.sock?db=2",
            ("localhost", 6379, "/run/r.sock", 2),
            "redis+unix:///run/r.sock?db=2",
        ),
    ],
)
def test_where_it_leads(url: str, where: tuple[object, ...], shown: str) -> None:
    parsed = parse_url(url, "shop")
    assert (parsed.host, parsed.port, parsed.path, parsed.db) == where
    assert str(parsed) == shown


def test_credentials_are_unquoted_and_not_shown() -> None:
    parsed = parse_url("redis://me:p%40ss@h/1", "shop")
    assert (parsed.user, parsed.password) == ("me", "p@ss")
    assert "p@ss" not in f"{parsed} {parsed!r}"
    assert "p%40ss" not in f"{parsed} {parsed!r}"
    assert str(parsed) == "redis://me@h:6379/1"


def test_keys_are_tagged_and_channels_know_the_database() -> None:
    parsed = parse_url("redis://h/7", "shop")
    assert parsed.prefix == "{shop}:"
    assert parsed.channels != parse_url("redis://h/8", "shop").channels
    assert parsed.channels.startswith(parsed.prefix)


def test_tls_has_options() -> None:
    assert parse_url("rediss://h?ssl_cert_reqs=none", "shop").tls == {"ssl_cert_reqs": "none"}
    assert parse_url("rediss://h", "shop").tls == {}
    assert parse_url("redis://h", "shop").tls is None


def test_replicas_are_waited_for_on_request() -> None:
    assert parse_url("redis://h", "shop").replicas == 0
    parsed = parse_url("redis://h?durability=replicated&replicas=2&replica_timeout=0.5", "shop")
    assert (parsed.replicas, parsed.replica_timeout) == (2, 0.5)
    parsed = parse_url("redis://h?durability=replicated&call_timeout=1", "shop")
    assert (parsed.replicas, parsed.replica_timeout) == (1, 0.5), "there is time left for the call itself"


@pytest.mark.parametrize(
    "wrong",
    [
        "redis://h:port",
        "redis://h/one",
        "redis://h/1/2",
        "redis://h?ssl_ca_certs=/x",
        "rediss://h?ssl_cert_reqs=x",
        "rediss://h?ssl_ca_certs=/nowhere/ca.pem",
        "rediss://h?ssl_keyfile=/nowhere/key.pem",
    ],
)
def test_what_cannot_be_meant(wrong: str) -> None:
    with pytest.raises(BadUrl):
        parse_url(wrong, "shop")


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:12/SECRET@host/0",
        "redis://:12?SECRET@h/0",
        "redis://:12#SECRET@h/0",
        "redis://:SECRET/1@h/0",
        "redis://[SECRET@h/0",
        "redis://:12/SECRET?x@h",
        "redis://h/0#SECRET",
        "redis://h/0?SECRET",
    ],
)
def test_an_unreadable_url_is_not_repeated(url: str) -> None:
    with pytest.raises(BadUrl, match="unreadable URL") as raised:
        parse_url(url, "shop")
    assert "SECRET" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_tracebacks_drawn_by_rich_show_no_secret() -> None:
    parsed = parse_url("redis://me:SECRET@h/1", "shop")
    assert parsed.__rich_repr__() == [("shown", "redis://me@h:6379/1"), ("namespace", "shop")]
