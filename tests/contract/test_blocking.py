from tidemill.testing.contract.transactions.blocking import *
