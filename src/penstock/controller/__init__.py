"""The controller: the one elected member that does the cluster's chores. `tick` says what a chore is."""
