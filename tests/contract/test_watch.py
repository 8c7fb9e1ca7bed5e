from tidemill.testing.contract.watch import *
