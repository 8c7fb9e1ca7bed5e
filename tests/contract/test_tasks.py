from tidemill.testing.contract.tasks import *
