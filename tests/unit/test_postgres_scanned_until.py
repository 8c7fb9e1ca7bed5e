"""Where the scans for late commits begin."""

from tidemill.engines.postgres.order.cursors import BUSY, Cursors
from tidemill.engines.postgres.order.scanned_until import RECENT, ScannedLane, ScannedUntil, SeqRange

PLAIN = ScannedLane("q", 5, "")


def took(cursors: Cursors, seq: int, group: str = "") -> None:
    cursors.taken("q", 5, False, group, seq)


def test_the_first_scan_has_what_is_recent_as_new_and_the_rest_as_old() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    assert scanned.new() == []
    took(cursors, RECENT + 99)
    new = scanned.new()
    assert new == [SeqRange(PLAIN, 100, RECENT + 100)]
    assert scanned.old() == [SeqRange(PLAIN, 0, 100)]
    scanned.scanned_new(new, [100])
    assert scanned.new() == new, "there was no time for it"
    scanned.scanned_old(scanned.old(), [100])
    assert scanned.old() == []


def test_the_first_scan_of_few_seqs_has_nothing_old() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    took(cursors, 99)
    assert scanned.new() == [SeqRange(PLAIN, 0, 100)]
    assert scanned.old() == []


def test_a_long_scan_goes_on_when_everything_is_to_be_scanned_again() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    other = ScannedLane("other", 0, "")
    took(cursors, RECENT + 99)
    scanned.new()
    scanned.scanned_old(scanned.old(), [70])
    cursors.taken("other", 0, False, "", 59)
    scanned.scanned_new(scanned.new(), [100, 60])
    scanned.scan_again()
    assert scanned.old() == [SeqRange(PLAIN, 70, 100), SeqRange(other, 0, 60)]


def test_a_scan_goes_on_where_the_last_one_ended() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    took(cursors, 9)
    scanned.scanned_new(scanned.new(), [10])
    took(cursors, 99)
    new = scanned.new()
    assert new == [SeqRange(PLAIN, 10, 100)]
    took(cursors, 199)
    scanned.scanned_new(new, [40])
    assert scanned.new() == [SeqRange(PLAIN, 40, 200)], "its bound was reached"
    scanned.scanned_new(scanned.new(), [200])
    assert scanned.new() == []


def test_scanned_until_goes_back_with_its_cursor() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    took(cursors, 99)
    scanned.scanned_new(scanned.new(), [100])
    cursors.exhausted("q", 50, at=10.0)
    cursors.exhausted("q", 50, at=10.2)
    assert PLAIN not in [each.lane for each in scanned.new()]
    took(cursors, 99)
    assert SeqRange(PLAIN, 51, 100) in scanned.new()


def test_old_ranges_are_scanned_in_turns_and_again_when_asked() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    other = ScannedLane("other", 0, "")
    took(cursors, 99)
    cursors.taken("other", 0, False, "", 59)
    scanned.scanned_new(scanned.new(), [100, 60])
    scanned.scan_again()
    first = scanned.old()
    assert first == [SeqRange(PLAIN, 0, 100), SeqRange(other, 0, 60)]
    scanned.scanned_old(first, [70, 0])
    second = scanned.old()
    assert second == [SeqRange(other, 0, 60), SeqRange(PLAIN, 70, 100)]
    scanned.scanned_old(second, [60, 100])
    assert scanned.old() == []
    scanned.scan_again()
    assert scanned.old() == first


def test_what_a_scan_had_no_time_for_comes_first_at_the_next() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    other = ScannedLane("q", 7, "")
    took(cursors, 0)
    cursors.taken("q", 7, False, "", 1)
    scanned.scanned_new(scanned.new(), [1, 2])
    took(cursors, 99)
    cursors.taken("q", 7, False, "", 98)
    new = scanned.new()
    assert [each.lane for each in new] == [PLAIN, other]
    scanned.scanned_new(new, [50, new[1].begin])
    assert [each.lane for each in scanned.new()] == [other, PLAIN]


def test_a_busy_lane_with_a_group_is_scanned_and_a_quiet_one_forgotten() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    for seq in range(BUSY):
        took(cursors, seq, "k")
    scanned.scanned_new(scanned.new(), [BUSY])
    took(cursors, 99, "k")
    lane = ScannedLane("q", 5, "k")
    assert scanned.new() == [SeqRange(lane, BUSY, 100)]
    cursors.forget_quiet_lanes()
    assert scanned.new() == [SeqRange(lane, BUSY, 100)], "it gave"
    cursors.forget_quiet_lanes()
    assert scanned.new() == scanned.old() == []


def test_nothing_is_left_of_what_was_forgotten() -> None:
    cursors = Cursors()
    scanned = ScannedUntil(cursors)
    took(cursors, 99)
    scanned.new()
    before = cursors.generation
    cursors.forget()
    scanned.forget()
    assert cursors.generation != before
    assert cursors.plain(["q"]) == [0] * 22
    assert scanned.new() == scanned.old() == []
