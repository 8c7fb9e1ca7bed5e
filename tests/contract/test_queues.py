from tidemill.testing.contract.queues import *
