"""Page views for tallyd: queued, sent in the background, counted once.  README.md beside this folder says how."""

from .client import Client
from .middleware import AsgiMiddleware, WsgiMiddleware

__all__ = ["AsgiMiddleware", "Client", "WsgiMiddleware"]
__version__ = "1.0.0"
