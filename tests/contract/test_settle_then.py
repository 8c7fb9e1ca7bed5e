from tidemill.testing.contract.jobs.settle_then import *
