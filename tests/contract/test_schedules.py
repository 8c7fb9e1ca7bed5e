from tidemill.testing.contract.cluster.schedules import *
