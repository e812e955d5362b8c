"""The doors: what turns bytes from clients into messages, and answers into bytes."""
