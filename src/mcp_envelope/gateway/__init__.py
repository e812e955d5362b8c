"""The gateway: what reads settings and folders, and puts the parts together."""
