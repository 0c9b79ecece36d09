"""Cherubin, Köpf, Paverd, Tople, Wutschitz and Zanella-Béguelin, USENIX Security 2024."""
