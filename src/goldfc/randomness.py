"""Randomness: one generator for each role in a run, by the seed and the role alone."""

import hashlib

import numpy as np


def generator(seed: int, *role: str) -> np.random.Generator:
    """Randomness for one role in a run, such as ("server",).

    It depends on the seed and the role alone, so that no site's result changes with who else takes part.
    """
    digest = hashlib.blake2b("\0".join(role).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def site_generator(seed: int, name: str) -> np.random.Generator:
    """That of a site, by its name; "client" is the paper's word, and another would give other results."""
    return generator(seed, "client", name)
