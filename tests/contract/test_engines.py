from penstock.testing.contract.engines import *
