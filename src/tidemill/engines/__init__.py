"""The engines. Each is a stranger to the others and sees only `tidemill.engine` and `tidemill.model`."""
