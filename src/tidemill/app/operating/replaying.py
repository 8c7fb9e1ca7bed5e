"""A dead letter runs again with other arguments: the same job, with its id and its history.

Its queue, priority, retry, tags and everything else stay as they were asked for. Its key is computed anew
where it comes from an argument.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemill.app.access.session import EngineSession
from tidemill.app.enqueueing.by_name import job_by_name
from tidemill.app.enqueueing.options import Options
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import Edit, JobRecord, ReplayAnswer

if TYPE_CHECKING:
    from tidemill.app.tidemill import Tidemill


def replay_edited(
    app: "Tidemill", job: JobRecord, args: Sequence[Any], kwargs: Mapping[str, Any], *, by: str = ""
) -> ReplayAnswer:
    """Replay it with these arguments, checked as in an enqueue by name."""
    token = new_id()  # one wish: a repeat after a lost reply does not replay twice

    async def replay(session: EngineSession) -> ReplayAnswer:
        edit = await _edit(session, app, job, args, kwargs)
        (answer,) = await session.engine.jobs.replay([job.id], token=token, edit=edit, by=by)
        return answer

    return app._link.wait("replay", replay)


async def _edit(
    session: EngineSession, app: "Tidemill", job: JobRecord, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Edit:
    definition = app.registry.find(job.task)
    entry = await session.entry(job.task) if definition is None else app.registry.entry_of(definition)
    from_argument = entry is not None and entry.key is not None
    options = Options(queue=job.queue, key=None if from_argument else job.key)
    new = await job_by_name(session, app, job.task, args, kwargs, options)
    return Edit(body=new.body, codec=new.codec, key=new.key)
