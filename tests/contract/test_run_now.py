from tidemill.testing.contract.jobs.run_now import *
