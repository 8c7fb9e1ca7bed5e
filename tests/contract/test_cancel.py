from tidemill.testing.contract.cancel import *
