"""Plain jobs: those of which nothing but order decides when they run.

Engines have short ways for them, because nearly all jobs are plain. What is not plain by this page takes the
general way; an engine may send more jobs there, and never fewer. The contract enqueues and claims a job with
each field that exists, in queues with each option that exists, so a new one has to be given its place here.
"""

from tidemill.model.jobs.job import NewJob
from tidemill.model.queues.queue import QueueOptions


def is_plain(job: NewJob, options: QueueOptions) -> bool:
    """Whether a job may take an engine's short ways in a queue with these options."""
    return is_plain_job(job) and is_plain_queue(options)


def is_plain_job(job: NewJob) -> bool:
    """Ready at once, for ever, without parents and without a unique key. Everything else that is said of it
    is only carried."""
    return not (
        job.delay or job.at is not None or job.expires is not None or job.after or job.unique is not None
    )


def is_plain_queue(options: QueueOptions) -> bool:
    """No limits, and lanes without groups: its jobs are taken by priority and order alone."""
    return not (options.own or options.keyed or any(options.per_task.values()))
