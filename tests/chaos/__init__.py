"""The chaos suite: a cluster of real processes on real servers, with faults, judged by checkers.

    plan        a seed becomes a list of faults: a pure function
    runner      starts the cluster, plays the plan, heals everything, waits until the schedules have caught up
                and all jobs have ended, and ends the cluster: only then is it read and judged
    history     what every process did, as JSON lines: operations and their outcomes, starts and ends
    reading     what the engine says at the end
    checkers    one small pure function for each promise, over history and reading
    plants      bugs, patched into the processes of a run, that a named checker has to find

`./dev chaos` runs it for minutes with fresh seeds; `./dev test` runs a short part. A run that fails prints
its seed; `./dev chaos --seed S --engine E` plays the same plan again, and `seeds` keeps those that failed.
"""
