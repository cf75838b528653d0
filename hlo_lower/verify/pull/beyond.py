"""What a proof ends with where it does not reach: never a wrong answer, always a reason."""


class Beyond(Exception):
    """Something that the symbolic evaluation does not know or has no time for; the message is a short noun phrase."""
