"""Readers of a report: text and JUnit."""
