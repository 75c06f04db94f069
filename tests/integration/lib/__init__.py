"""What the integration tests are made of.  Only the standard library."""
