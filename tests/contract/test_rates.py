from tidemill.testing.contract.order.rates import *
