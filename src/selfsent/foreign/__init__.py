"""Private names of other libraries that are relied on, one module for each library. What is missing is said."""
