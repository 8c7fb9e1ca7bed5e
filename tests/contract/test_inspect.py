from tidemill.testing.contract.read.inspect import *
