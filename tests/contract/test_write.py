from tidemill.testing.contract.write import *
