from tidemill.testing.contract.jobs.settle import *
