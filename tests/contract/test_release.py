from tidemill.testing.contract.jobs.release import *
