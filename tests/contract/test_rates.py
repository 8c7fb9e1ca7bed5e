from tidemill.testing.contract.rates import *
