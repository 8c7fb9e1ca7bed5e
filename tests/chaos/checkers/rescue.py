"""A death is noticed within its bound, and everything ends within a stated time after healing."""

from typing import NamedTuple

from tests.chaos.checkers.case import Case
from tests.chaos.history import Event

HOST_DEATHS = ("kill supervisor", "kill member", "kill controller")


class Rescue(NamedTuple):
    """A job that was running in a process that was killed."""

    job: str
    kind: str
    """process or host"""
    after_s: float
    """Until it was ready for others; infinite: never."""
    alone: bool
    """No other fault was under way."""


def rescues(case: Case) -> list[Rescue]:
    """All of a run."""
    running = _running_at_death(case)
    faults = _stretches(case)
    found = []
    for fault in case.history.of("fault"):
        if fault.text != "kill worker" and fault.text not in HOST_DEATHS:
            continue
        kind = "host" if fault.text in HOST_DEATHS else "process"
        bound_s = case.times.host_bound_s if kind == "host" else case.times.process_bound_s
        until = fault.at + bound_s + case.times.slack_s
        alone = not any(
            other is not fault and begin < until and end > fault.at - case.times.lease_s
            for other, begin, end in faults
        )
        for job, fence in running.get(id(fault), ()):
            if not _was_lost_before(case, job, fence, fault.at):
                found.append(Rescue(job, kind, _noticed(case, job, fence, fault.at) - fault.at, alone))
    return found


def rescue_within_bounds(case: Case) -> list[str]:
    """Of those that died while nothing else was wrong. Amid other faults there is no bound, but it comes."""
    found = []
    for one in rescues(case):
        if one.after_s == float("inf"):
            found.append(f"{one.job} never came back after its {one.kind} died")
            continue
        bound_s = case.times.host_bound_s if one.kind == "host" else case.times.process_bound_s
        if one.alone and one.after_s > bound_s + case.times.slack_s:
            found.append(
                f"{one.job} was back {one.after_s:.2f} s after its {one.kind} died; bound {bound_s} s"
            )
    return found


def everything_drains(case: Case) -> list[str]:
    """Once all is healed, every job ends in the stated time."""
    drained_s, bound_s = case.reading.drained_s, case.times.drain_s
    if drained_s is None or drained_s > bound_s:
        live = {job: one for job, one in case.reading.jobs.items() if one.state in ("ready", "running")}
        return [f"not everything had ended after {bound_s} s: {len(live)} ready or running"]
    return []


def _running_at_death(case: Case) -> dict[int, list[tuple[str, int]]]:
    """Fault -> the runs that had started in its processes and had not ended."""
    found: dict[int, list[tuple[str, int]]] = {}
    under_way: dict[int, tuple[int, str]] = {}  # by fence
    for event in case.history.events:
        if event.kind == "start":
            under_way[event.fences[0]] = event.pid, event.jobs[0]
        elif event.kind == "end" or (event.kind in ("settle", "release") and event.phase == "invoked"):
            for fence in event.fences:  # a task that was cut off writes no end
                under_way.pop(fence, None)
        elif event.kind == "fault" and event.text.startswith("kill"):
            dying = set(event.pids)
            found[id(event)] = [(job, fence) for fence, (pid, job) in under_way.items() if pid in dying]
    return found


def _was_lost_before(case: Case, job: str, fence: int, died_at: float) -> bool:
    """Whether the run had lost its job already, to another claim or by its end: nothing was to be rescued."""
    if any(take.fence > fence and take.ended < died_at for take in case.takes.get(job, ())):
        return True
    record = case.reading.jobs.get(job)
    if record is None or record.ended_at is None or record.settled_fence == fence:
        return False
    return case.local_time(record.ended_at) < died_at


def _noticed(case: Case, job: str, fence: int, died_at: float) -> float:
    """When the engine was done with the run: by the failure on its record (of any kind: the last words of a
    dying process may have come through), the next claim of its job, or the job's end."""
    moments = [take.ended for take in case.takes.get(job, ()) if take.fence > fence]
    attempt = case.attempts.get(fence)
    record = case.reading.jobs.get(job)
    if record is not None:
        moments += [
            case.local_time(failure.ended_at)
            for failure in record.failures
            if failure.ended_at is not None
            and (failure.kind in ("lost", "crash") or failure.attempt == attempt)
        ]
        if record.settled_fence == fence:  # its outcome was recorded
            moments.append(died_at)
        if record.ended_at is not None:  # cancelled, for one
            moments.append(case.local_time(record.ended_at))
        if record.ready_at is not None:  # its next claim may have had to wait for a limit
            moments.append(case.local_time(record.ready_at))
    return min((max(at, died_at) for at in moments if at > died_at - 0.1), default=float("inf"))


def _stretches(case: Case) -> list[tuple[Event, float, float]]:
    """Every fault with the time from its beginning to its healing."""
    heals: dict[str, list[float]] = {}
    for event in case.history.of("heal"):
        heals.setdefault(event.text, []).append(event.at)
    found = []
    for fault in case.history.of("fault"):
        later = [at for at in heals.get(fault.text, ()) if at >= fault.at]
        found.append((fault, fault.at, min(later, default=fault.at)))
    return found
