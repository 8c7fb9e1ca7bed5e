"""How many workers, and how many processes of one worker, the jobs want."""
