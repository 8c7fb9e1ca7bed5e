from penstock.testing.contract.moves import *
