from tidemill.testing.contract.order.aside import *
