from tidemill.testing.contract.promote import *
