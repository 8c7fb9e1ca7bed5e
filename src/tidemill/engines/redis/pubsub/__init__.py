"""Signals between processes: PUBLISH and SUBSCRIBE."""
