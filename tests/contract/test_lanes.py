from tidemill.testing.contract.lanes import *
