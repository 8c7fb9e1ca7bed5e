from tidemill.testing.contract.order.lanes import *
