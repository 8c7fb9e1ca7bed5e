from tidemill.testing.contract.cluster.queues import *
