"""Job ids: a UUIDv7 that sorts by its millisecond."""

import time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.ids import check_id, id_at, new_id, parse_id, show_id
from tidemill.model.time import Instant

moments = st.integers(0, (1 << 48) * 1_000 - 1)
noise = st.binary(min_size=10, max_size=10)


@given(moment=moments, rest=noise)
def test_the_layout_is_that_of_a_uuid_7(moment: Instant, rest: bytes) -> None:
    uuid = UUID(bytes=id_at(moment, rest))
    assert uuid.version == 7
    assert uuid.variant == "specified in RFC 4122"
    assert uuid.int >> 80 == moment // 1_000


@given(moment=moments, first=noise, second=noise)
def test_74_bits_are_free(moment: Instant, first: bytes, second: bytes) -> None:
    def free(rest: bytes) -> tuple[int, int]:
        bits = int.from_bytes(rest, "big")
        return bits >> 68, bits & ((1 << 62) - 1)

    assert (id_at(moment, first) == id_at(moment, second)) is (free(first) == free(second))


@given(first=moments, second=moments, noise_1=noise, noise_2=noise)
def test_ids_sort_by_their_millisecond(
    first: Instant, second: Instant, noise_1: bytes, noise_2: bytes
) -> None:
    if first // 1_000 != second // 1_000:
        assert (id_at(first, noise_1) < id_at(second, noise_2)) is (first < second)


def test_a_new_id_is_of_now_and_unlike_the_others() -> None:
    before = time.time_ns() // 1_000_000
    made = [new_id() for _ in range(1_000)]
    after = time.time_ns() // 1_000_000
    assert len(set(made)) == 1_000
    assert all(before <= int.from_bytes(job_id[:6], "big") <= after for job_id in made)


@given(moment=moments, rest=noise)
def test_an_id_is_read_in_each_of_its_forms(moment: Instant, rest: bytes) -> None:
    job_id = id_at(moment, rest)
    uuid = UUID(bytes=job_id)
    assert show_id(job_id) == str(uuid)
    for form in (job_id, uuid, str(uuid), str(uuid).upper(), uuid.hex):
        assert parse_id(form) == job_id


@pytest.mark.parametrize("text", ["", "hello", "0190", b"short", b"x" * 17, None, 5, "g" * 32])
def test_what_is_not_an_id_is_refused(text: Any) -> None:
    with pytest.raises(BadInput, match="a job id is"):
        parse_id(text)


@pytest.mark.parametrize("job_id", [b"", b"x" * 15, b"x" * 17, "x" * 16, None, bytearray(16)])
def test_only_16_bytes_are_an_id(job_id: Any) -> None:
    with pytest.raises(BadInput, match="16 bytes"):
        check_id(job_id)
