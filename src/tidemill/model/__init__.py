"""The pure heart of Tidemill: records, states and rules. No I/O, no clock, no engine.

Everything else points here; this package imports nothing of Tidemill and, outside the
standard library, only msgspec (records) and cronsim (calendar arithmetic).

| module | what it knows |
|---|---|
| `time` | instants and spans as int64 microseconds |
| `ids` | time-ordered job ids |
| `names` | which names are allowed |
| `job` | the states of a job, and its records |
| `run` | claims, outcomes, and what is written about a run |
| `lifecycle` | which transitions exist: the only authority |
| `retry` | when a failed attempt is tried again |
| `queue` | a queue's options: limits, rates, retention |
| `lane` | the unit of order and fairness, and how lanes share a claim |
| `gate` | one limit with its holders and its log |
| `member` | processes that beat, and what their silence means |
| `schedule` | cron and interval arithmetic |
| `event` | what is told about a change |
| `errors` | the tree of errors |
"""
