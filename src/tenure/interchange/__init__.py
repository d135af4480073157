"""Moving in, out and on: files, sources and stores."""
