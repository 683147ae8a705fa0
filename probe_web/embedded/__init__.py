"""The local mode: `python -m probe_web.embedded` starts a broker, a worker and the web server, keeps them up and stops them together.

No Django here: the supervisor is a small process that waits. What it starts is the same as in a larger installation.
"""
