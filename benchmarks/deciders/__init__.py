"""Compare rules that turn the probabilities of any model into label sets.

Learners are fitted once per data set (``learners``, ``probabilities``); every rule is tuned on
validation rows and scored on test rows (``rules``, ``compare``); ranks, differences and guarantees
are computed from these scores (``summary``, ``report``).
"""
