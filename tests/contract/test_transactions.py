from penstock.testing.contract.transactions import *
