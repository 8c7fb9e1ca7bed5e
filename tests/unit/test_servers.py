"""A server that is not installed is a skip with a hint on a laptop, and a failure in CI."""

import pytest

from tests.servers import pgbouncer, postgres
from tests.servers.fixtures import redis_or_skip, server_or_skip


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "FOLDERS", ())
    monkeypatch.setattr(pgbouncer, "FOLDERS", ())
    monkeypatch.setenv("PATH", "")


def test_on_a_laptop_it_is_skipped_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMILL_REQUIRE_ALL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install --no-install-recommends postgresql"):
        server_or_skip()
    with pytest.raises(pytest.skip.Exception, match="apt-get install --no-install-recommends redis-server"):
        redis_or_skip()


def test_in_ci_it_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMILL_REQUIRE_ALL", "1")
    for start in (server_or_skip, redis_or_skip):
        with pytest.raises(postgres.NoServer, match="apt-get install"):
            start()


def test_a_pooler_that_is_missing_says_what_to_install() -> None:
    with pytest.raises(postgres.NoServer, match="apt-get install --no-install-recommends pgbouncer"):
        pgbouncer.program()
