from penstock.testing.contract.lost_reply import *
