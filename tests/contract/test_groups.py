from tidemill.testing.contract.read.groups import *
