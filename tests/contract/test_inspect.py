from tidemill.testing.contract.inspect import *
