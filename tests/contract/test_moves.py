from tidemill.testing.contract.read.moves import *
