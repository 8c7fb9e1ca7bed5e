from tidemill.testing.contract.faults.bad_input import *
