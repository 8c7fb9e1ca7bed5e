from tidemill.testing.contract.transactions.transactions import *
