"""Async tasks: one asyncio task for each job, on the worker's own loop.

The whole run is one coroutine, which catches everything: its task never ends with an exception, so that not
even SystemExit or KeyboardInterrupt, raised by a job, reaches the loop. Every job gets a copy of the context
in which the worker was made, and not of whatever job happened to end before it.
"""

import asyncio
from contextvars import copy_context

from penstock.task.current import CURRENT
from penstock.worker.outcomes import aborted, raised, returned
from penstock.worker.runners.steps import Steps
from penstock.worker.runs import Run


class LoopRunner:
    """Runs `async def` functions."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    def begin(self, run: Run) -> None:
        """Run it soon."""
        run.handle = self._loop.create_task(
            self._perform(run), name=run.job.task, context=self._context.copy()
        )

    async def _perform(self, run: Run) -> None:
        steps, running = self._steps, run.running
        if running.aborted is not None:  # before it began: a coroutine that was not started cannot catch
            steps.end(run, aborted(run, running.aborted))
            return
        CURRENT.set(running)
        steps.start(run)
        if run.due_ns:
            steps.watch(run)
        try:
            function, kwargs = run.terms.function, run.kwargs
            value = await (function(*run.args, **kwargs) if kwargs else function(*run.args))
            ending = returned(run, value)
        except BaseException as error:
            steps.end(run, raised(run, error))
        else:
            steps.end(run, ending)
