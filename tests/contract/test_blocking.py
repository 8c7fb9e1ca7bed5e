from tidemill.testing.contract.blocking import *
