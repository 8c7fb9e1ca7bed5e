"""The worker: claims jobs, runs them, settles what became of them."""
