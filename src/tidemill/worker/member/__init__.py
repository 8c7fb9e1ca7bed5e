"""The member: the process that sends heartbeats, respawns worker processes, and blames runs for deaths."""
