"""What stands between the socket and the routes, as pure ASGI middleware."""
