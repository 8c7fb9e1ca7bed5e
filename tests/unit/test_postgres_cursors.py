"""How far a claim moves its cursors."""

from tidemill.engines.postgres.order.cursors import BACK_S, ON_THE_WAY_S, Cursors

LATER = 1.01 * ON_THE_WAY_S


def cursor(cursors: Cursors, priority: int = 5) -> int:
    return cursors.plain(["q"])[2 * priority]


def test_a_job_that_was_taken_moves_its_own_cursor() -> None:
    cursors = Cursors()
    cursors.taken("q", 5, False, "", 7)
    assert (cursor(cursors), cursor(cursors, 6)) == (8, 0)


def test_all_that_was_found_moves_every_cursor_but_only_after_a_while() -> None:
    cursors = Cursors()
    cursors.exhausted("q", 10, at=100.0)
    cursors.exhausted("q", 11, at=100.0 + ON_THE_WAY_S / 2)
    assert cursor(cursors) == 0, "10 may have been drawn by somebody who has not committed yet"
    cursors.exhausted("q", 12, at=100.0 + LATER)
    assert (cursor(cursors), cursor(cursors, 0)) == (11, 11)
    cursors.exhausted("q", 12, at=100.0 + 2 * LATER)
    assert cursor(cursors) == 13


def test_a_cursor_goes_back_for_what_may_be_on_its_way() -> None:
    cursors = Cursors()
    cursors.exhausted("q", 10, at=100.0)
    cursors.taken("q", 5, False, "", 15)
    cursors.exhausted("q", 15, at=100.0 + LATER)
    assert cursor(cursors) == 11


def test_a_cursor_does_not_go_back_over_a_full_load() -> None:
    cursors = Cursors()
    cursors.exhausted("q", 10, at=100.0)
    cursors.exhausted("q", 10, at=100.0 + LATER)
    cursors.taken("q", 5, False, "", 500_000)
    cursors.exhausted("q", 500_000, at=101.0 + BACK_S)
    assert cursor(cursors) == 500_001


def test_claims_in_quick_succession_are_not_all_remembered() -> None:
    cursors = Cursors()
    for number in range(10_000):
        cursors.exhausted("q", number, at=100.0 + number / 100_000)
    (queue,) = cursors._queues.values()
    assert len(queue.drained) <= 21
