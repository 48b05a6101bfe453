"""The UDPipe REST API of LINDAT, free of HTTP: its parameters in, its envelope out."""

from service.lindat.fields import read_fields
from service.lindat.models import lindat_models
from service.lindat.process import LindatAnswer, process
from service.lindat.request import LindatRequest, read_request

__all__ = [
    "LindatAnswer",
    "LindatRequest",
    "lindat_models",
    "process",
    "read_fields",
    "read_request",
]
