"""An index as a service: requests, batches, HTTP and the search page."""
