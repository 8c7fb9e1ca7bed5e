"""The seam between Tidemill and where its state lives: the contract, and what every engine uses."""
