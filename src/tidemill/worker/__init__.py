"""The worker: claims jobs, runs them, settles what became of them.

| module | what it does |
|---|---|
| `config` | everything a worker is told, as plain data |
| `worker` | one claimant, wired together |
| `exchange` | the one trip to the engine: outcomes there, jobs back |
| `claims`, `wants` | when to ask for jobs, and for how many |
| `slots`, `buffer` | what may run now, what waits for a moment |
| `executor`, `terms`, `outcomes` | running one job: a pipeline of small steps over one `runs.Run` |
| `runners` | where it runs: on the loop, in a thread, in a process |
| `stops`, `deadlines` | what stops running code, and when |
| `notes` | progress and log lines on their way |
| `insistence`, `backoff`, `bell`, `listener`, `moments`, `report` | patience, signals, facts, log lines |
| `embedded`, `heart` | a worker inside another program |
| `supervisor`, `spawn`, `child`, `beats`, `candidate`, `board`, `channel` | the process group around it |
"""
