from tidemill.testing.contract.moves import *
