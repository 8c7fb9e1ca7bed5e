from tidemill.testing.contract.read.counts import *
