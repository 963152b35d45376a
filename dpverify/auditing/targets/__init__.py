"""What can be audited: adapters of plain functions."""
