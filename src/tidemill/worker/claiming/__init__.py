"""Claiming: when to claim and how many jobs, the one trip to the engine, and the slots that jobs wait for."""
