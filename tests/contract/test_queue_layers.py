from tidemill.testing.contract.cluster.queue_layers import *
