"""The contract of what people see."""
