"""Calls under way, connections that come back by themselves, subscriptions."""
