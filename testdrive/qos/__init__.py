"""The rules of a user on latencies: their language, what a plan makes of them, and the verdict."""
