"""`python -m tidemill` is the `tidemill` command."""

from tidemill.cli import main

if __name__ == "__main__":
    main(prog_name="tidemill")
