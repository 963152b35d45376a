"""Other notions of privacy: Rényi, zCDP, f-DP, and an attacker's error rates."""
