from tidemill.testing.contract.jobs.children import *
