from tidemill.testing.contract.order.plain import *
