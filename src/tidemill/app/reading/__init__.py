"""What programs read: results, events, members."""
