"""What a site does at the level `private`: (eps, delta)-differential privacy of its one message.

`curator.py` is the one way to the rows, `noise.py` what is added, `mechanism.py` what is asked for, and in which order.
docs/differential-privacy.md has the theorem and its proof.
"""
