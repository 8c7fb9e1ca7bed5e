from tidemill.testing.contract.transactions.transactions_complete import *
