from penstock.testing.contract.enqueue import *
