from tidemill.testing.contract.order.gates import *
