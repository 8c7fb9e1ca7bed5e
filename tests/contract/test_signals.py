from penstock.testing.contract.signals import *
