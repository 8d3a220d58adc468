"""The HTTP interface, the event streams and the console."""
