from tidemill.testing.contract.jobs.enqueue import *
