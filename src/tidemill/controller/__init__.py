"""The controller: the one elected member that does the cluster's chores.

Two controllers at once do no harm: every tick is idempotent and guarded. What cannot wait for an election
(due times, the jobs of members that are gone) is done by every worker, without a leader.
"""
