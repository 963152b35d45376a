"""Other libraries, one module each, run as processes of their own.

They run in environments of their own, which ``python -m benchmarks.peers.install`` makes under
``out/peers`` by `requirements.txt` and its like, and import nothing of this project but `protocol`.
`dpverify` answers by the same protocol; `sniper` is a method that no package offers.
"""
