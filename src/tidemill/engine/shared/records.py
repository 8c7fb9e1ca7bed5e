"""What is shown of a job, the same whatever store it was read from."""

from tidemill.model.job import Job


def tombstone(job: Job) -> Job:
    """What is known of a job of which nothing is kept."""
    return Job(
        id=job.id, task=job.task, queue=job.queue, priority=job.priority, state=job.state,
        settled_fence=job.settled_fence, ended_at=job.ended_at,
    )  # fmt: skip
