from penstock.testing.contract.retire import *
