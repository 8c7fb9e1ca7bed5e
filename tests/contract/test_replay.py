from tidemill.testing.contract.jobs.replay import *
