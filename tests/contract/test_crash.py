from tidemill.testing.contract.cluster.crash import *
