from tidemill.testing.contract.counts import *
