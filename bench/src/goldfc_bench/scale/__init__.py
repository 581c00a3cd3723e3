"""How fast everything is, how it grows, what it takes, and how far it is from what the machine could do.

Seconds on a shared machine mean little; ratios within one run mean more. So whatever is compared is run in turn, with
one thread each, after compilation, and medians count.
"""
