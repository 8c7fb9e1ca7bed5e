"""A job: its record, its states, its runs, and what follows from how a run ended."""
