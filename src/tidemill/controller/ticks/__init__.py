"""What the controller does, one bounded chore a module. Two controllers at once do no harm."""
