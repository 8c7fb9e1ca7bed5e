"""Queues with limits of their own, and tenants who share one.

python queues.py

Four queues as a web shop has them, and a queue in which three tenants take turns. The program works on its
own jobs; in production, `tidemill worker queues:app` does.
"""

import asyncio
from collections import Counter

from tidemill import Limit, Retry, Tidemill

app = Tidemill()  # where $TIDEMILL_URL points

app.queue("email", concurrency=5, rate="100/60s", timeout=30, retry=Retry(attempts=3, base=5))
app.queue("pdf", concurrency=3, timeout=120, retry=Retry(attempts=2, base=10, backoff="fixed"))
app.queue("webhooks", concurrency=10, rate="50/10s", timeout=15, retry=Retry(attempts=5, base=1))
app.queue("images", concurrency=4, timeout=60, retry=Retry(attempts=2, base=5, backoff="fixed"))

# Of ten turns gold gets six, silver three and free one, while all of them have jobs; what one does not use,
# the others get. Nobody has more than four at once, and free no more than one, 30 in a minute.
app.queue(
    "reports",
    concurrency=6,
    fair_by="key",
    weights={"gold": 6, "silver": 3, "free": 1},
    per_key=4,
    limits={"free": Limit(concurrency=1, rate="30/m")},
)

reported: list[str] = []
enough = asyncio.Event()


@app.task(queue="email")
async def send(to: str) -> str:
    return f"sent to {to}"


@app.task(queue="pdf")
def render(page: int) -> str:
    return f"page {page}"


@app.task(queue="webhooks")
async def notify(url: str) -> str:
    return f"called {url}"


@app.task(queue="images")
def scale(name: str) -> str:
    return f"scaled {name}"


@app.task(queue="reports", key="tenant")
async def report(tenant: str) -> None:
    reported.append(tenant)
    if len(reported) == 100:
        enough.set()
    await asyncio.sleep(0.02)


async def main() -> None:
    """Something for each queue, then a hundred reports for each tenant."""
    calls = [
        send.call("ada@example.com"),
        render.call(1),
        notify.call("https://example.com"),
        scale.call("cat.png"),
    ]
    jobs = await app.aenqueue_many(calls)
    tenants = ("gold", "silver", "free")
    await app.aenqueue_many(report.call(tenant) for _ in range(100) for tenant in tenants)
    async with app.worker():
        for job in jobs:
            print(await job.aresult(timeout=60))
        await enough.wait()
    first = Counter(reported[:100])
    print("of the first 100 reports:", ", ".join(f"{tenant} {first[tenant]}" for tenant in tenants))


if __name__ == "__main__":
    asyncio.run(main())
