"""Object storage of a branch: buckets and their objects."""
