"""How long a term is trusted."""

import pytest

from tidemill.controller.term import MARGIN, ElectedTerm

SECOND_NS = 1_000_000_000


class Clock:
    now_ns = 50 * SECOND_NS

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.row("D1")
def test_a_term_is_trusted_from_the_request_until_a_margin_before_the_end(clock: Clock) -> None:
    sent_ns = clock.now_ns - 3 * SECOND_NS  # the answer took 3 s
    term = ElectedTerm(7, sent_ns=sent_ns, lease_s=10, clock=clock)
    assert term.fence == 7
    assert term.left_s() == pytest.approx(10 * (1 - MARGIN) - 3)
    clock.now_ns = sent_ns + int(9 * SECOND_NS) - 1
    assert term.trusted()
    clock.now_ns += 1
    assert not term.trusted()
    assert term.left_s() == 0


@pytest.mark.row("D1")
def test_an_answer_that_took_longer_than_the_lease_is_worth_nothing(clock: Clock) -> None:
    assert not ElectedTerm(1, sent_ns=clock.now_ns - 11 * SECOND_NS, lease_s=10, clock=clock).trusted()


def test_a_renewal_counts_from_its_own_request(clock: Clock) -> None:
    term = ElectedTerm(1, sent_ns=clock.now_ns, lease_s=10, clock=clock)
    clock.now_ns += 5 * SECOND_NS
    term.prolong(clock.now_ns - SECOND_NS)
    assert term.left_s() == pytest.approx(8)


def test_a_term_that_was_ended_is_over_whatever_the_clock_says(clock: Clock) -> None:
    term = ElectedTerm(1, sent_ns=clock.now_ns, lease_s=10, clock=clock)
    term.end()
    term.prolong(clock.now_ns)
    assert not term.trusted()
    assert "term 1" in repr(term)
