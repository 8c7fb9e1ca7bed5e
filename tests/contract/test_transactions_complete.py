from tidemill.testing.contract.transactions_complete import *
