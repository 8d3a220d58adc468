"""`python -m policy` runs the service."""

from contracts import service

from policy import app, domain
from policy.settings import Settings

if __name__ == "__main__":
    service.run("policy", Settings(), app.start, reads=domain.READS)
