"""What a task is: its name, its signature, how its arguments travel, and what running code can ask.

signature    arguments are bound, checked against the annotations and encoded; and decoded again
codec        values to JSON and back, by type
definition   one task with its options, as workers see it
registry     the tasks and queues of one app
catalogue    what workers publish of them, for those who enqueue by name
current      the job that runs here and now
failures     exceptions as records
settings     every setting, and where its value came from
"""
