from tidemill.testing.contract.gates import *
