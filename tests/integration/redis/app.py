"""The app of tests in which the engine forgets what workers have published."""

from penstock.app.penstock import Penstock

app = Penstock()
app.queue("narrow", concurrency=2)


@app.task(queue="narrow")
async def squeeze(number: int) -> int:
    return number
