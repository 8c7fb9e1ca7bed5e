from tidemill.testing.contract.order.key_limits import *
