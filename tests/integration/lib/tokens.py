"""What a token file holds."""

import hashlib


def token_line(token, behind):
    """`behind`: the token's scopes, perhaps site=, and its name."""
    return f"{hashlib.sha256(token.encode()).hexdigest()} {behind}\n"
