"""What is checked: the planted bugs and the suites that audits run."""
