from tidemill.testing.contract.retire import *
