"""Neural networks that value positions, and score candidates where they have a policy head.

`inputs` says what a network gets, `network` what it computes, and its gradients; `decisions` is
another one, a policy over single decisions; `files` reads and writes models.
"""
