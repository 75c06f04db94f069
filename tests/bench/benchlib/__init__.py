"""The driver of `make bench`.  Only the standard library."""
