"""The toolsets that this service offers."""
