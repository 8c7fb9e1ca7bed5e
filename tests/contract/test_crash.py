from tidemill.testing.contract.crash import *
