from penstock.testing.contract.claim_numbers import *
