"""Work on several processors or machines, and the versions that results depend on."""
