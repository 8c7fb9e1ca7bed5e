from tidemill.testing.contract.order.prune import *
