"""Programs exported to Export IR."""
