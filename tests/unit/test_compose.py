"""compose.yaml says what it should, as far as that can be seen without Docker."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tidemill.engines.postgres.url import parse_url
from tidemill.engines.redis.url import parse_url as parse_redis_url

ROOT = Path(__file__).parents[2]
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@pytest.fixture
def text() -> str:
    return (ROOT / "compose.yaml").read_text()


@pytest.fixture
def services(text: str) -> Any:
    """As they are when no variable is set."""
    found = yaml.safe_load(VARIABLE.sub(lambda variable: variable[2], text))
    assert set(found["volumes"]) == {"postgres", "redis"}
    return found["services"]


def test_every_variable_has_a_default(text: str) -> None:
    assert VARIABLE.findall(text)
    assert [name for name, default in VARIABLE.findall(text) if not default] == []


def test_the_server_is_healthy_persistent_and_for_this_machine_alone(services: Any) -> None:
    server = services["postgres"]
    assert server["healthcheck"]["test"][1] == "pg_isready"
    assert server["volumes"] == ["postgres:/var/lib/postgresql/data"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])


def test_the_worker_waits_for_the_server_and_finds_it(services: Any) -> None:
    worker, server = services["worker"], services["postgres"]["environment"]
    assert worker["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    place = parse_url(worker["environment"]["TIDEMILL_URL"], "tidemill")
    assert [address.host for address in place.addresses] == ["postgres"]
    assert (place.user, place.password, place.database) == (
        server["POSTGRES_USER"],
        server["POSTGRES_PASSWORD"],
        server["POSTGRES_DB"],
    )
    assert urlsplit(worker["environment"]["TIDEMILL_URL"]).port == 5432


def test_redis_keeps_what_it_is_given_and_is_for_this_machine_alone(services: Any) -> None:
    server = services["redis"]
    said = server["command"]
    settings = dict(zip(said[1::2], said[2::2], strict=True))
    assert said[0] == "redis-server"
    assert settings["--appendonly"] == "yes"
    assert settings["--appendfsync"] in ("everysec", "always")
    assert settings["--maxmemory-policy"] == "noeviction"
    assert settings["--requirepass"] == server["environment"]["REDISCLI_AUTH"]
    assert server["volumes"] == ["redis:/data"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert server["healthcheck"]["test"][1] == "redis-cli ping | grep -q PONG"


def test_a_worker_on_redis_is_there_on_request_and_finds_it(services: Any) -> None:
    worker, other = services["worker-redis"], services["worker"]
    assert worker["profiles"] == ["redis"]
    assert worker["depends_on"] == {"redis": {"condition": "service_healthy"}}
    assert (worker["build"], worker["stop_grace_period"]) == (other["build"], other["stop_grace_period"])
    place = parse_redis_url(worker["environment"]["TIDEMILL_URL"], "tidemill")
    password = services["redis"]["environment"]["REDISCLI_AUTH"]
    assert (place.host, place.port, place.password) == ("redis", 6379, password)


def test_the_image_is_made_of_what_is_there(services: Any) -> None:
    build = services["worker"]["build"]
    image = (ROOT / build["context"] / build["dockerfile"]).read_text()
    sent = (ROOT / ".dockerignore").read_text()
    copied = [name for line in re.findall(r"(?m)^COPY (.+) \S+$", image) for name in line.split()]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}\n" in sent, f"{name} is not sent to the builder"
    assert 'CMD ["tidemill", "worker", "shop:app"]' in image
    assert "/tidemill[postgres,redis]" in image
