from tidemill.testing.contract.order.promote import *
