"""Pure ASGI middleware between the socket and the routes."""
