"""The experiments: data, simulated federations, rival methods, scores and reports."""
