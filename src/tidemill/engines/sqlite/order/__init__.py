"""Where jobs stand: positions, ranges of consecutive jobs, lanes, gates."""
