from tidemill.testing.contract.drop import *
