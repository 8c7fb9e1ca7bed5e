"""Running one job: a pipeline of small steps over one `Run`, what stops it, and what becomes of it.

A job runs on the loop (`async def`), in a thread (`def`), or in a process of its own. Each of the three is
given a run whose arguments are decoded. It performs the run and makes an outcome of what happened where it
happened: encoding a result or formatting a traceback does not hold up the loop. Then it hands the ending back
on the loop.
"""
