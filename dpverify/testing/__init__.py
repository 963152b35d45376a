"""For developers: adapters, Hypothesis strategies and the pytest plugin.

Nothing is imported here, because pytest loads the plugin, and this package with it, in every run.
"""
