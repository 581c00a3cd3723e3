"""The experiments: data, rival methods, scores and reports."""
