from tidemill.testing.contract.faults.engines import *
