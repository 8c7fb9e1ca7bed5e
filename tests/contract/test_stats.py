from tidemill.testing.contract.read.stats import *
