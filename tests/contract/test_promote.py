from penstock.testing.contract.promote import *
