"""The controller: the one elected member that does the cluster's chores.

| module | |
|---|---|
| `election`, `term` | who it is, and for how long that can be trusted |
| `controller` | stands, and runs the ticks of a term |
| `tick`, `ticks` | what a tick is, and all there are |
| `promotion`, `retention`, `upkeep`, `schedules` | one tick each |
| `startups`, `retirement` | of schedules: what runs when the cluster starts, what no code declares any more |

Correct with two at once: every tick is idempotent and guarded. What cannot wait for an election (due times,
the jobs of members that are gone) is done by every worker, without a leader.
"""
