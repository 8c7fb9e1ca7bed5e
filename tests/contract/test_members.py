from penstock.testing.contract.members import *
