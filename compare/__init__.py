"""The Django app: engine, services, API."""

__version__ = "0.1.0"
