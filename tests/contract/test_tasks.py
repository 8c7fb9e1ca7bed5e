from tidemill.testing.contract.cluster.tasks import *
