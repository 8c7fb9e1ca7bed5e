from penstock.testing.contract.children import *
