from tidemill.testing.contract.read.why import *
