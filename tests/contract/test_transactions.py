from tidemill.testing.contract.transactions import *
