"""Other queues, measured beside ours. One file each, run in a virtual environment of its own: mixed ones
silently downgrade some. Each file names the page that its configuration comes from."""
