"""Models of a UDPipe 2 service elsewhere, such as LINDAT's."""
