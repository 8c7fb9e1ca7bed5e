"""The demo's application: tasks that behave and tasks that do not. Workers load it as any other."""

import asyncio
import os
import random
import time

from tidemill import Retry, Tidemill, current_job

app = Tidemill()


class MailboxFull(Exception):
    """What a mail server may say at first."""


class NoSuchOrder(Exception):
    """What no retry will mend."""


@app.task(name="welcome")
async def welcome(to: str) -> str:
    """Succeeds."""
    await asyncio.sleep(random.uniform(0.3, 1.2))
    return f"sent to {to}"


@app.task(name="thumbnail")
def thumbnail(photo: str, width: int) -> str:
    """Succeeds, in a thread."""
    time.sleep(0.8)
    return f"{photo}@{width}"


@app.task(name="remind", retry=Retry(attempts=3))
async def remind(to: str) -> str:
    """Succeeds; enqueued for later."""
    return f"reminded {to}"


@app.task(name="newsletter", retry=Retry(attempts=4, base=2.0))
async def newsletter(to: str) -> str:
    """Fails once."""
    await asyncio.sleep(0.3)
    if current_job().attempt == 1:
        raise MailboxFull(f"{to}: try again later")
    return f"sent to {to}"


@app.task(name="refund", retry=Retry(attempts=3, base=2.0))
def refund(order: int, cents: int) -> None:
    """Fails for good."""
    time.sleep(0.2)
    raise NoSuchOrder(f"there is no order {order}")


@app.task(name="export", timeout=1.5, retry=Retry(attempts=2, base=1.0))
async def export(table: str) -> None:
    """Runs past its timeout."""
    await asyncio.sleep(3_600)


@app.task(name="render")
async def render(film: str, frames: int) -> str:
    """Takes its time, and says in which process: the demo kills that one."""
    for frame in range(frames):
        current_job().progress(frame, frames, f"in process {os.getpid()}")
        await asyncio.sleep(0.25)
    return f"{film}: {frames} frames"


@app.task(name="order", retry=Retry(attempts=4, base=1.0))
async def order(number: int, least_s: float, most_s: float, fail: float) -> int:
    """One job of the steady stream."""
    await asyncio.sleep(random.uniform(least_s, most_s))
    if random.random() < fail:
        raise MailboxFull(f"order {number}: the shop is closed")
    return number
