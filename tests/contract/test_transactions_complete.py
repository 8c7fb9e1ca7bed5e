from penstock.testing.contract.transactions_complete import *
