"""Servers that the gateway stands in front of, each behind the same few methods."""
