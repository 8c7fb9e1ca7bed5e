from tidemill.testing.contract.cluster.members import *
