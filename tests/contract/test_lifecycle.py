from tidemill.testing.contract.jobs.lifecycle import *
