from tidemill.testing.contract.settle_then import *
