from tidemill.testing.contract.replay import *
