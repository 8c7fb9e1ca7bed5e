from tidemill.testing.contract.cluster.retire import *
