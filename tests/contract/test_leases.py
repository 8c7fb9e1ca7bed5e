from tidemill.testing.contract.cluster.leases import *
