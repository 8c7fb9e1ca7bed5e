"""What application code holds in its hands.

tidemill     `Tidemill`: tasks, queues, enqueue, results
task         `Task`, `Bound`, `Call`: a function that can be enqueued, typed
job          `Job`: one requested run, seen from outside
job_info     what is known of a job, as people read it
options      what a call may say, and how it becomes a job
accepting    what is said of wrong names and wrong types
same_call    whether an id that is there is that of the same call
link         the way from any thread or loop to the engine
portal       the thread with the loop that blocking calls go through
session      an engine on one loop, with what hangs on it: producer, waiter, catalogue
producer     concurrent enqueues merge into batches
waiter       results are awaited by signal
loading      from `module:attribute` to an app
in_worker    an app in the hands of a worker: what users do not need
"""
