"""Generated families of data: whether the default is good on what users bring, and what the federation costs there.

sites.py     what the sites of a drawn federation hold, as every method gets it
ours.py      the default in its variants, and each kind of cluster alone
rivals.py    GOLD and coreset k-means at the same sites; what scikit-learn has, on pooled rows
run.py       one row for every family, draw and method
results.py   means, the judge, the price of federation, certainty; the targets
page.py, picture.py
"""
