"""Native libraries."""
