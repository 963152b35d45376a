"""Projections by a secret normal matrix: graphs and covariances."""
