"""The API's error answers: a type, a status and a message for the person who calls."""

from typing import Any

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
MESSAGES = {
    401: "invalid x-api-key",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your organization's rate limit",
    500: "Internal server error",
    504: "Request timed out",
    529: "Overloaded",
}


class ApiError(Exception):
    """An answer that is not a message. `retry_after` is in seconds."""

    def __init__(self, status: int, message: str = "", *, retry_after: float | None = None) -> None:
        self.status = status
        self.type = TYPES.get(status, "api_error")
        self.message = message or MESSAGES.get(status, "The request failed")
        self.retry_after = retry_after
        super().__init__(self.message)

    def body(self, request_id: str) -> dict[str, Any]:
        return {
            "type": "error",
            "error": {"type": self.type, "message": self.message},
            "request_id": request_id,
        }

    def headers(self) -> dict[str, str]:
        headers = {"x-should-retry": "true" if self.status == 429 or self.status >= 500 else "false"}
        if self.retry_after is not None:
            headers["retry-after"] = f"{self.retry_after:g}"
        return headers
