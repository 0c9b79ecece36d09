"""What a result says of itself where somebody types its name."""


def one_line(result, longest=300):
    """Whether its repr is one line that a person can read."""
    shown = repr(result)
    unreadable = ("\n", " object at ", "array(", "<dprime")
    return len(shown) <= longest and not any(part in shown for part in unreadable)
