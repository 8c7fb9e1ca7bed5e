from penstock.testing.contract.claim import *
