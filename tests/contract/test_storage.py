from tidemill.testing.contract.read.storage import *
