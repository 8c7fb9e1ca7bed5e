from penstock.testing.contract.cancel import *
