"""One module per group of routes; a route turns a request into a call and a result into JSON."""
