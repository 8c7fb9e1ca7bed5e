from tidemill.testing.contract.schedules import *
