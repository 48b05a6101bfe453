"""Training of UDPipe models: what ``parsebank models train udpipe`` does."""
