"""The way of a call: one function for every door, handed everything that it needs."""
