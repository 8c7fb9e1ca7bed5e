"""The app of tests in which the engine forgets what workers have published."""

from tidemill.app.tidemill import Tidemill

app = Tidemill()
app.queue("narrow", concurrency=2)


@app.task(queue="narrow")
async def squeeze(number: int) -> int:
    return number
