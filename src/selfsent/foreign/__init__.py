"""Private names of other libraries, one module for each library; missing ones are reported."""
