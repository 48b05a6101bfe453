"""The matrices of `syntax.matrices` on the device that trains."""
