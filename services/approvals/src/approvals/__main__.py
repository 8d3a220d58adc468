"""`python -m approvals` runs the service."""

from contracts import service

from approvals import app, domain
from approvals.settings import Settings

if __name__ == "__main__":
    service.run("approvals", Settings(), app.start, reads=domain.READS)
