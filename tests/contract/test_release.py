from tidemill.testing.contract.release import *
