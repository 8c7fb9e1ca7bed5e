from tidemill.testing.contract.members import *
