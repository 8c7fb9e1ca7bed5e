"""The engines. Each is a stranger to the others and sees only `penstock.engine` and `penstock.model`."""
