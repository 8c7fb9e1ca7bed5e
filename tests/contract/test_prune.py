from tidemill.testing.contract.prune import *
