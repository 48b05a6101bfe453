"""Training UDPipe models."""
