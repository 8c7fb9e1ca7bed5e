from penstock.testing.contract.write import *
