"""One file a command; thin, over the engine or a service."""
