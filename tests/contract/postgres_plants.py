"""Planted bugs: each changes the PostgreSQL engine as a mistake would have written it, in Python or in the
text of a migration: the test server's databases are made with it (see `planting`)."""

import pytest

from penstock.engines.postgres import claim, schema, settle
from penstock.engines.postgres.cursors import Cursors
from penstock.model.run import Answer
from tests.contract.planting import Plants, replaced

PLANTS = Plants()
plant = PLANTS.plant
pytest_configure = PLANTS.configure


def rewrite(patch: pytest.MonkeyPatch, part: str, old: str, new: str) -> None:
    """Change the one place in a migration's text."""
    for place, migration in enumerate(schema.MIGRATIONS):
        if part in migration.name:
            changed = list(schema.MIGRATIONS)
            changed[place] = migration._replace(sql=replaced(migration.sql, old, new, where=migration.name))
            patch.setattr(schema, "MIGRATIONS", changed)
            return
    raise AssertionError(f"there is no migration {part}")


@plant("settle", "lifecycle")
def completion_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "settle",
        "j.id = i.id AND j.token IS NOT DISTINCT FROM i.fence",
        "j.id = i.id AND j.token IS NOT NULL",
    )


@plant("settle", "lost_reply")
def a_repeated_settle_is_stale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settle, "ANSWERS", (Answer.APPLIED, Answer.STALE, Answer.STALE))


@plant("release", "crash")
def what_is_given_back_goes_to_the_end(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "CASE WHEN p_keep_seq THEN job.seq ELSE nextval('seq') END", "nextval('seq')")


@plant("release", "gates")
def what_is_given_back_is_not_marked(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "back = p_keep_seq", "back = false")


@plant("claim", "concurrency")
def cursors_run_ahead(patch: pytest.MonkeyPatch) -> None:
    right = Cursors.taken

    def ahead(self: Cursors, queue: str, priority: int, suspect: bool, lane: str, seq: int) -> None:
        right(self, queue, priority, suspect, lane, seq + 2)

    patch.setattr(Cursors, "taken", ahead)


@plant("gates")
def permits_are_not_freed(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "settled_fence = i.fence, gated = false,", "settled_fence = i.fence,")


@plant("gates")
def the_gate_of_a_key_is_not_told(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "IF q.key_limited THEN", "IF false THEN")


@plant("rates")
def starts_are_not_added_up(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "gates", "SET count = start.count + excluded.count", "SET count = excluded.count")


@plant("claim_numbers", "lost_reply")
def a_repeated_claim_takes_more(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "0005_claim", "ELSIF p_number = v_last THEN", "ELSIF false THEN")


@plant("lanes")
def turns_begin_anew_with_every_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claim.Claims, "_turns_in", lambda self, claimant, queue: {})


@plant("lanes")
def lanes_are_not_announced(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "enqueue", "IF v_shaped <> '{}' THEN", "IF false THEN")


@plant("lanes")
def priorities_are_upside_down(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "claim",
        "priority = ((c.place - 1) / 2)::smallint",
        "priority = (10 - (c.place - 1) / 2)::smallint",
    )


@plant("promote")
def due_jobs_stand_by_creation(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "ORDER BY due_at, seq LIMIT", "ORDER BY seq LIMIT")


@plant("settle")
def failures_use_no_attempt(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "j.attempts := j.attempts + 1;", "")


@plant("settle", "cancel")
def a_cancelled_job_is_retried(patch: pytest.MonkeyPatch) -> None:
    old = "IF j.cancel_asked THEN\n            signals := to_final_v1(j, 6, p_now);"
    rewrite(patch, "settle", old, old.replace("j.cancel_asked", "false"))


@plant("prune", "settle", "lost_reply")
def tombstones_forget_their_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "SET form = 2,", "SET form = 2, settled_fence = NULL,")


@plant("members")
def beats_give_nothing_back(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "members", "WHERE h.claim_no <= p_answered[n] AND", "WHERE h.claim_no < 0 AND")


@plant("crash")
def anybody_may_sweep(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "members", "entitled := FOUND AND", "entitled := FOUND OR")


@plant("retire", "crash")
def the_retired_may_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "claim", "IF c.retired_at IS NOT NULL THEN", "IF false THEN")


@plant("replay", "lost_reply")
def replay_forgets_its_token(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "commands", "j.replay_token := p_token;", "")


@plant("children")
def children_are_not_told(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "EXIT WHEN moved >= p_limit;", "EXIT;")


@plant("transactions_complete")
def completing_in_a_transaction_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "transactions",
        "WHERE id = p_id AND token IS NOT DISTINCT FROM p_fence FOR NO KEY UPDATE;",
        "WHERE id = p_id AND token IS NOT NULL FOR NO KEY UPDATE;",
    )


@plant("transactions_complete")
def completing_in_a_transaction_is_not_remembered(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "transactions", "settled_fence = p_fence, gated = false,", "gated = false,")


@plant("transactions_complete")
def a_retirement_forgets_what_it_had_to_leave(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "members", "WHERE c.retired_at IS NOT NULL LIMIT p_limit", "WHERE false LIMIT p_limit")
