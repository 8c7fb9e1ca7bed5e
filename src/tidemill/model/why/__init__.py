"""Why a job is not running: what an engine knows of that, and the reasons that follow."""
