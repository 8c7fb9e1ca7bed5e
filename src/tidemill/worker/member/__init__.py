"""The member: the process that sends heartbeats, restarts worker processes, blames lost runs."""
