"""What scripts beside this folder import."""
