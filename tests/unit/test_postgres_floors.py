"""Where looks behind the cursors begin."""

from tidemill.engines.postgres.cursors import BUSY, Cursors
from tidemill.engines.postgres.floors import RECENT, Floors, Lane, Stretch

PLAIN = Lane("q", 5, "")


def took(cursors: Cursors, seq: int, group: str = "") -> None:
    cursors.taken("q", 5, False, group, seq)


def test_the_first_look_has_what_is_recent_walked_as_new_and_the_rest_as_old() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    assert floors.new() == []
    took(cursors, RECENT + 99)
    new = floors.new()
    assert new == [Stretch(PLAIN, 100, RECENT + 100)]
    assert floors.old() == [Stretch(PLAIN, 0, 100)]
    floors.rise(new, [100])
    assert floors.new() == new, "there was no time for it"
    floors.walked(floors.old(), [100])
    assert floors.old() == []


def test_the_first_look_at_few_seqs_has_nothing_old() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    took(cursors, 99)
    assert floors.new() == [Stretch(PLAIN, 0, 100)]
    assert floors.old() == []


def test_a_long_walk_goes_on_when_everything_is_to_be_walked_once_more() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    other = Lane("other", 0, "")
    took(cursors, RECENT + 99)
    floors.new()
    floors.walked(floors.old(), [70])
    cursors.taken("other", 0, False, "", 59)
    floors.rise(floors.new(), [100, 60])
    floors.look_again()
    assert floors.old() == [Stretch(PLAIN, 70, 100), Stretch(other, 0, 60)]


def test_a_look_goes_on_where_the_last_one_ended() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    took(cursors, 9)
    floors.rise(floors.new(), [10])
    took(cursors, 99)
    new = floors.new()
    assert new == [Stretch(PLAIN, 10, 100)]
    took(cursors, 199)
    floors.rise(new, [40])
    assert floors.new() == [Stretch(PLAIN, 40, 200)], "its bound was reached"
    floors.rise(floors.new(), [200])
    assert floors.new() == []


def test_a_floor_goes_back_with_its_cursor() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    took(cursors, 99)
    floors.rise(floors.new(), [100])
    cursors.exhausted("q", 50, at=10.0)
    cursors.exhausted("q", 50, at=10.2)
    assert PLAIN not in [stretch.lane for stretch in floors.new()]
    took(cursors, 99)
    assert Stretch(PLAIN, 51, 100) in floors.new()


def test_old_stretches_are_walked_in_turns_and_once_more_when_asked() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    other = Lane("other", 0, "")
    took(cursors, 99)
    cursors.taken("other", 0, False, "", 59)
    floors.rise(floors.new(), [100, 60])
    floors.look_again()
    first = floors.old()
    assert first == [Stretch(PLAIN, 0, 100), Stretch(other, 0, 60)]
    floors.walked(first, [70, 0])
    second = floors.old()
    assert second == [Stretch(other, 0, 60), Stretch(PLAIN, 70, 100)]
    floors.walked(second, [60, 100])
    assert floors.old() == []
    floors.look_again()
    assert floors.old() == first


def test_what_a_look_had_no_time_for_comes_first_at_the_next() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    other = Lane("q", 7, "")
    took(cursors, 0)
    cursors.taken("q", 7, False, "", 1)
    floors.rise(floors.new(), [1, 2])
    took(cursors, 99)
    cursors.taken("q", 7, False, "", 98)
    new = floors.new()
    assert [stretch.lane for stretch in new] == [PLAIN, other]
    floors.rise(new, [50, new[1].begin])
    assert [stretch.lane for stretch in floors.new()] == [other, PLAIN]


def test_a_busy_lane_with_a_group_has_a_floor_and_a_quiet_one_loses_it() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    for seq in range(BUSY):
        took(cursors, seq, "k")
    floors.rise(floors.new(), [BUSY])
    took(cursors, 99, "k")
    lane = Lane("q", 5, "k")
    assert floors.new() == [Stretch(lane, BUSY, 100)]
    cursors.forget_quiet_lanes()
    assert floors.new() == [Stretch(lane, BUSY, 100)], "it gave"
    cursors.forget_quiet_lanes()
    assert floors.new() == floors.old() == []


def test_nothing_is_left_of_what_was_forgotten() -> None:
    cursors = Cursors()
    floors = Floors(cursors)
    took(cursors, 99)
    floors.new()
    before = cursors.generation
    cursors.forget()
    floors.forget()
    assert cursors.generation != before
    assert cursors.plain(["q"]) == [0] * 22
    assert floors.new() == floors.old() == []
