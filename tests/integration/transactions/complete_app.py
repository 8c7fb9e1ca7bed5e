"""Tasks that complete themselves in a transaction of their own, and die on the way if they are told to."""

import asyncio
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.integration.transactions.sqlite_path import path_of
from tidemill import Tidemill, current_job

app = Tidemill()

POINTS = ("before complete", "before commit", "after commit")


def connect(url: str) -> Any:
    if not url.startswith("postgresql"):
        return sqlite3.connect(path_of(url))
    import psycopg

    return psycopg.connect(url)


def perhaps_die(folder: str, here: str, point: str) -> None:
    """Once, at the point in question."""
    died = Path(folder, f"died {current_job().id}")
    if here == point and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def order(url: str, folder: str, point: str) -> str:
    """The user's row and the outcome commit together."""
    job = current_job()
    job.log.info("attempt %d", job.attempt)
    with closing(connect(url)) as connection:
        connection.execute(f"INSERT INTO job_orders (job) VALUES ('{job.id}')")
        perhaps_die(folder, "before complete", point)
        job.complete("stored", transaction=connection)
        perhaps_die(folder, "before commit", point)
        connection.commit()
        perhaps_die(folder, "after commit", point)
    return "not used"


@app.task
def in_thread(url: str, folder: str, point: str) -> str:
    return order(url, folder, point)


@app.task(runs_in="process")
def in_process(url: str, folder: str, point: str) -> str:
    return order(url, folder, point)


@app.task
async def on_loop(url: str, folder: str, point: str) -> str:
    job = current_job()
    with closing(
        await asyncio.to_thread(connect, url) if url.startswith("postgresql") else connect(url)
    ) as own:
        own.execute(f"INSERT INTO job_orders (job) VALUES ('{job.id}')")
        perhaps_die(folder, "before complete", point)
        await job.acomplete("stored", transaction=own)
        perhaps_die(folder, "before commit", point)
        own.commit()
        perhaps_die(folder, "after commit", point)
    return "not used"
