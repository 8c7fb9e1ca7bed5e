"""A shop: welcome mails and invoices. Run a worker, then this file:

tidemill worker shop:app
python shop.py
"""

import asyncio
from dataclasses import dataclass
from decimal import Decimal

from tidemill import Retry, Tidemill, current_job

app = Tidemill()  # where $TIDEMILL_URL points
app.queue("mail", rate="100/m", retry=Retry(attempts=3, base=5))


@dataclass
class Order:
    """What somebody bought."""

    number: int
    total: Decimal


class MailServerBusy(Exception):
    """It may do better in a moment."""


@app.task(queue="mail", retry=Retry(attempts=3, base=0.5, on=(MailServerBusy,)))
async def welcome(to: str) -> str:
    """Fails at first, as mail servers do."""
    await asyncio.sleep(0.1)
    if current_job().attempt == 1:
        raise MailServerBusy(f"{to}: try again")
    return f"sent to {to}"


@app.task
def invoice(order: Order, tax_percent: int) -> Decimal:
    """Runs in a thread; arguments and result keep their types."""
    return order.total + order.total * tax_percent / 100


def main() -> None:
    """Enqueue a few jobs, and wait for what becomes of them."""
    mails = app.enqueue_many(welcome.call(f"{name}@example.com") for name in ("ada", "grace"))
    bill = invoice.enqueue(Order(4711, Decimal("12.50")), tax_percent=20)
    for mail in mails:
        print(mail.result(timeout=60))
    print(bill.result(timeout=60))


if __name__ == "__main__":
    main()
