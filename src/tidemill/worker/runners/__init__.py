"""Where a job runs: on the loop (`async def`), in a thread (`def`), or in a process of its own.

A runner is given a run whose arguments are decoded. It performs it, normalises what became of it where it
ran (encoding a result or formatting a traceback does not hold up the loop), and hands the ending back on the
loop."""
