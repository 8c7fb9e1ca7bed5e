from tidemill.testing.contract.bad_input import *
