"""Survey answers under local differential privacy."""
