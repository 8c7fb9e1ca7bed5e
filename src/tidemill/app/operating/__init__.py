"""What programs and operators change at run time."""
