from penstock.testing.contract.storage import *
