"""The same protocol over Flower: the summaries and the model of a federation by files, carried by a live one.

    job.py          what `goldfc federate` orders, and what it is told: two small files at the server
    records.py      our bytes inside Flower's records
    exchange.py     questions to nodes and their answers, over Flower's grid
    port.py         the port `ask`, on top of it
    server_app.py   Flower's ServerApp
    site_app.py   Flower's ClientApp
    simulate.py     both on Flower's simulation engine
    kit.py          what it takes to run all this safely on several machines

All but `job` and `kit` need Flower (`goldfc[flower]`).
"""
