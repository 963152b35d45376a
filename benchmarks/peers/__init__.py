"""The libraries of `benchmarks.accountants`, one module each, run as processes of their own.

All but `dpverify` run in an environment that has the peers, and import nothing of this project but
`protocol`. `requirements.txt` pins that environment:

    python3.11 -m venv PEERS
    PEERS/bin/pip install --requirement benchmarks/peers/requirements.txt
    DPVERIFY_PEERS_PYTHON=PEERS/bin/python python -m benchmarks.accountants
"""
