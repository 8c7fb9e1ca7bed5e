"""What is tested alike on every engine that is a server: their test modules import it."""
