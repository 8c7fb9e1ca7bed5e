from tidemill.testing.contract.settle import *
