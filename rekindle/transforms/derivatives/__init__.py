"""Programs that compute derivatives of programs."""
