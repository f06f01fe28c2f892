"""Code that exists for speed alone. Every part has a slow twin in tests/naive or in torch."""
