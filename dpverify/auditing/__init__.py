"""The auditor: attacks what a mechanism claims."""
