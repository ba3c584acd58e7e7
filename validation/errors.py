"""Why a validation could not be carried out."""


class ValidationError(Exception):
    """What failed, the value, and what to do now, in one message."""
